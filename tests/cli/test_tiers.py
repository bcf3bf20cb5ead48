"""How tiers are started and linked."""

from __future__ import annotations

import pytest

from services.cli.probes import GrpcHealthProbe, HttpProbe
from services.cli.tiers import frontend_url, local_address, tiers
from services.cli.up_settings import UpSettings
from services.engine.settings import EngineSettings
from services.frontend.settings import FrontendSettings
from services.tokenizer.settings import TokenizerSettings


def settings(tokenizers: int = 1, host: str = "127.0.0.1") -> UpSettings:
    """The tiers' settings on ports of their own."""
    return UpSettings(
        EngineSettings(model="tiny", port=1, drain_seconds=4.0),
        TokenizerSettings(port=20, metrics_port=30, drain_seconds=5.0),
        tokenizers,
        FrontendSettings(host=host, port=3, drain_seconds=6.0),
    )


def test_tiers_are_linked_by_their_ports() -> None:
    """Each tokenizer is told the engine and its own ports, and the frontend all tokenizers."""
    (engine,), tokenizers, (frontend,) = tiers(settings(2), {"PATH": "/bin"})
    assert engine.env == {"PATH": "/bin"}
    assert [tier.env for tier in tokenizers] == [
        {
            "PATH": "/bin",
            "OMNI_TOKENIZER_ENGINE": "127.0.0.1:1",
            "OMNI_TOKENIZER_PORT": str(20 + i),
            "OMNI_TOKENIZER_METRICS_PORT": str(30 + i),
        }
        for i in range(2)
    ]
    assert frontend.env == {"PATH": "/bin", "OMNI_FRONTEND_TOKENIZERS": "127.0.0.1:20,127.0.0.1:21"}
    assert [tier.name for tier in (engine, *tokenizers, frontend)] == [
        "engine",
        "tokenizer 1",
        "tokenizer 2",
        "frontend",
    ]


def test_each_tier_is_run_and_asked_its_own_way() -> None:
    """Each is a module of services, asked for its health where it listens, with its own drain time."""
    stages = tiers(settings(), {})
    assert [[tier.argv[-2:] for tier in stage] for stage in stages] == [
        [["-m", "services.engine"]],
        [["-m", "services.tokenizer"]],
        [["-m", "services.frontend"]],
    ]
    assert [stage[0].probe for stage in stages] == [
        GrpcHealthProbe("127.0.0.1:1"),
        GrpcHealthProbe("127.0.0.1:20"),
        HttpProbe("http://127.0.0.1:3/health/ready"),
    ]
    assert [stage[0].drain_seconds for stage in stages] == [4.0, 5.0, 6.0]


@pytest.mark.parametrize(
    ("host", "address"),
    [("0.0.0.0", "127.0.0.1:3"), ("::", "[::1]:3"), ("192.0.2.7", "192.0.2.7:3"), ("localhost", "localhost:3")],
)
def test_any_address_is_reached_over_loopback(host: str, address: str) -> None:
    """What listens on every address is reached on this machine's own; others are used as they are."""
    assert local_address(host, 3) == address
    assert frontend_url(settings(host=host)) == f"http://{address}"
