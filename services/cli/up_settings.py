"""The settings of all tiers of one machine, from options and the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.chassis.settings import SettingsError
from services.cli.state_directory import state_directory
from services.engine.settings import EngineSettings
from services.frontend.api_keys import ApiKeys
from services.frontend.presets.library import Presets
from services.frontend.sessions.opening import check_database
from services.frontend.settings import FrontendSettings
from services.tokenizer.filters.rules_file import read_rules
from services.tokenizer.settings import TokenizerSettings

# What links the tiers follows from their ports.
_LINKS = ("OMNI_TOKENIZER_ENGINE", "OMNI_FRONTEND_TOKENIZERS")


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `stream-omni up`; what is None is left to the environment, then to the tier's own default.

    Args:
        model: directory or hub id.
        port: the frontend's.
        engine_port: the engine's gRPC port.
        engine_metrics_port: the engine's metrics port.
        tokenizer_port: gRPC port of the first tokenizer; process i takes i more.
        tokenizer_metrics_port: metrics port of the first tokenizer; process i takes i more.
        tokenizers: number of tokenizer processes.
        served_name: the model's name in requests.
        engine_args: vLLM's engine arguments; they go over those of the environment.
        filters_file: TOML file of the tokenizers' output filters.
        state_dir: directory of what outlives the service; by default that of the user's state.
    """

    model: str | None = None
    port: int | None = None
    engine_port: int | None = None
    engine_metrics_port: int | None = None
    tokenizer_port: int | None = None
    tokenizer_metrics_port: int | None = None
    tokenizers: int = 1
    served_name: str | None = None
    engine_args: Mapping[str, Any] | None = None
    filters_file: str | None = None
    state_dir: str | None = None


@dataclass(frozen=True, slots=True)
class UpSettings:
    """Each tier's settings as the tier itself will read them."""

    engine: EngineSettings
    tokenizer: TokenizerSettings
    tokenizers: int
    frontend: FrontendSettings


@dataclass(frozen=True, slots=True)
class OwnPort:
    """A port that a tier will open, and the option that changes it."""

    host: str
    number: int
    option: str


def load_settings(options: UpOptions) -> UpSettings:
    """Put the options into this process's environment, which the tiers inherit, and load the settings from there.

    So a wrong value or an unknown variable is told before anything is started.

    Raises:
        SettingsError: a setting is unknown, wrong or not one to be made here.
    """
    if given := [name for name in _LINKS if name in os.environ]:
        raise SettingsError(f"{' and '.join(given)} cannot be chosen here, since up links its tiers itself; unset it")
    if given := sorted(name for name in os.environ if name.startswith("OMNI_") and "_TLS_" in name):
        raise SettingsError(
            f"{' and '.join(given)} cannot be set here, since up links its tiers in plain text on this machine;"
            " start the tiers one by one, or unset it and end TLS at a proxy"
        )
    chosen = {
        "OMNI_ENGINE_MODEL": options.model,
        "OMNI_ENGINE_PORT": options.engine_port,
        "OMNI_ENGINE_METRICS_PORT": options.engine_metrics_port,
        "OMNI_ENGINE_SERVED_NAME": options.served_name,
        "OMNI_TOKENIZER_PORT": options.tokenizer_port,
        "OMNI_TOKENIZER_METRICS_PORT": options.tokenizer_metrics_port,
        "OMNI_TOKENIZER_FILTERS_FILE": options.filters_file,
        "OMNI_FRONTEND_PORT": options.port,
        "OMNI_FRONTEND_STATE_DIR": options.state_dir,
    }
    os.environ.update({name: str(value) for name, value in chosen.items() if value is not None})
    os.environ.setdefault("OMNI_FRONTEND_STATE_DIR", str(state_directory(os.environ)))
    if options.engine_args:
        os.environ["OMNI_ENGINE_ARGS"] = json.dumps({**EngineSettings.load().args, **options.engine_args})
    settings = UpSettings(EngineSettings.load(), TokenizerSettings.load(), options.tokenizers, FrontendSettings.load())
    _check_ports(own_ports(settings))
    if settings.frontend.api_keys_file is not None:
        # Else the frontend tells only once the engine has loaded its model.
        ApiKeys(settings.frontend.api_keys_file)
    Presets(settings.frontend.presets_dir)
    if settings.tokenizer.filters_file is not None:
        read_rules(settings.tokenizer.filters_file)
    check_database(settings.frontend)
    return settings


def own_ports(settings: UpSettings) -> Sequence[OwnPort]:
    """All ports that the tiers will open."""
    engine, tokenizer, frontend = settings.engine, settings.tokenizer, settings.frontend
    steps = range(settings.tokenizers)
    return [
        OwnPort(frontend.host, frontend.port, "--port"),
        OwnPort(engine.host, engine.port, "--engine-port"),
        OwnPort(engine.host, engine.metrics_port, "--engine-metrics-port"),
        *(OwnPort(tokenizer.host, tokenizer.port + i, "--tokenizer-port") for i in steps),
        *(OwnPort(tokenizer.host, tokenizer.metrics_port + i, "--tokenizer-metrics-port") for i in steps),
    ]


def _check_ports(ports: Sequence[OwnPort]) -> None:
    options: dict[int, str] = {}
    for own in ports:
        if not 1 <= own.number <= 65535:
            raise SettingsError(f"port {own.number} cannot be used; give {own.option} a number from 1 to 65535")
        if own.number in options:
            raise SettingsError(f"port {own.number} is taken twice, by {options[own.number]} and {own.option}")
        options[own.number] = own.option
