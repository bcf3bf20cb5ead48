"""How the tiers are started on one machine, and how each shows that it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.cli.probes import GrpcHealthProbe, HttpProbe
from services.cli.tied import python_module
from services.cli.tier import Tier
from services.cli.up_settings import UpSettings

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def local_address(host: str, port: int) -> str:
    """The address, host:port, at which this machine reaches what listens on ``host``."""
    host = _ANY_ADDRESS.get(host, host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def tiers(settings: UpSettings, environ: Mapping[str, str]) -> Sequence[Sequence[Tier]]:
    """The tiers from the engine to the user: engine, tokenizers, frontend.

    Args:
        environ: what each tier's environment begins with.
    """
    engine, tokenizer, frontend = settings.engine, settings.tokenizer, settings.frontend
    engine_target = local_address(engine.host, engine.port)
    targets = [local_address(tokenizer.host, tokenizer.port + i) for i in range(settings.tokenizers)]
    return [
        [_tier("engine", "engine", environ, GrpcHealthProbe(engine_target), engine.drain_seconds)],
        [
            _tier(
                "tokenizer" if settings.tokenizers == 1 else f"tokenizer {i + 1}",
                "tokenizer",
                {
                    **environ,
                    "OMNI_TOKENIZER_ENGINE": engine_target,
                    "OMNI_TOKENIZER_PORT": str(tokenizer.port + i),
                    "OMNI_TOKENIZER_METRICS_PORT": str(tokenizer.metrics_port + i),
                },
                GrpcHealthProbe(target),
                tokenizer.drain_seconds,
            )
            for i, target in enumerate(targets)
        ],
        [
            _tier(
                "frontend",
                "frontend",
                {**environ, "OMNI_FRONTEND_TOKENIZERS": ",".join(targets)},
                HttpProbe(f"{frontend_url(settings)}/health/ready"),
                frontend.drain_seconds,
            )
        ],
    ]


def frontend_url(settings: UpSettings) -> str:
    """The service's URL on this machine, without a slash at its end."""
    return f"http://{local_address(settings.frontend.host, settings.frontend.port)}"


def _tier(
    name: str, package: str, environ: Mapping[str, str], probe: GrpcHealthProbe | HttpProbe, drain_seconds: float
) -> Tier:
    return Tier(name, python_module(f"services.{package}"), environ, probe, drain_seconds)
