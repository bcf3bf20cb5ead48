"""The tokenizer tier's settings."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from services.chassis.settings import SettingsError
from services.tokenizer.settings import TokenizerSettings


def test_defaults_are_the_documented_ports() -> None:
    """Without a variable the service listens and looks for its engine where the documentation says."""
    settings = TokenizerSettings()
    assert (settings.engine, settings.host, settings.port, settings.metrics_port) == (
        "127.0.0.1:50051",
        "127.0.0.1",
        50061,
        9111,
    )
    assert not settings.allow_control_tokens


def test_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each setting comes from its variable, in its type."""
    monkeypatch.setenv("OMNI_TOKENIZER_ENGINE", "engine.internal:1")
    monkeypatch.setenv("OMNI_TOKENIZER_PORT", "0")
    monkeypatch.setenv("OMNI_TOKENIZER_DRAIN_SECONDS", "0.5")
    monkeypatch.setenv("OMNI_TOKENIZER_TOOL_PARSER", "pythonic")
    monkeypatch.setenv("OMNI_TOKENIZER_REASONING_PARSER", "none")
    monkeypatch.setenv("OMNI_TOKENIZER_ALLOW_CONTROL_TOKENS", "true")
    settings = TokenizerSettings.load()
    assert settings.allow_control_tokens
    assert (settings.engine, settings.port, settings.drain_seconds) == ("engine.internal:1", 0, 0.5)
    assert (settings.tool_parser, settings.reasoning_parser) == ("pythonic", "none")


def test_unknown_variables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable is an error that names it."""
    monkeypatch.setenv("OMNI_TOKENIZER_PROT", "1")
    with pytest.raises(SettingsError, match=r"unknown setting OMNI_TOKENIZER_PROT; known are .*OMNI_TOKENIZER_PORT"):
        TokenizerSettings.load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENGINE", ""),
        ("ENGINE", "nowhere"),
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("PORT", "gRPC"),
        ("METRICS_PORT", "65536"),
        ("MAX_GENERATIONS", "0"),
        ("DRAIN_SECONDS", "-1"),
        ("DRAIN_SECONDS", "inf"),
        ("DRAIN_SECONDS", "nan"),
        ("LOG_LEVEL", "LOUD"),
        ("TOOL_PARSER", "magic"),
        ("REASONING_PARSER", ""),
    ],
)
def test_wrong_values_are_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A value that the service cannot work with is one line that names its setting."""
    monkeypatch.setenv(f"OMNI_TOKENIZER_{name}", value)
    with pytest.raises(SettingsError, match=f"^setting OMNI_TOKENIZER_{name} is wrong: ") as caught:
        TokenizerSettings.load()
    assert "\n" not in str(caught.value)


def test_settings_do_not_change() -> None:
    """They are frozen."""
    settings = TokenizerSettings()
    with pytest.raises(ValidationError):
        settings.port = 1
