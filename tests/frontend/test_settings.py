"""The frontend's settings."""

from __future__ import annotations

import pytest

from services.chassis.settings import SettingsError
from services.frontend.settings import FrontendSettings


def test_defaults() -> None:
    """Without any variable the frontend serves this machine only and asks the tokenizer of this machine."""
    settings = FrontendSettings.load()
    assert (settings.host, settings.port, settings.tokenizers) == ("127.0.0.1", 8000, ("127.0.0.1:50061",))
    assert settings.body_limit_bytes == 20 * 1024 * 1024


@pytest.mark.parametrize("given", ["a:1,b:2", "a:1, b:2,", '["a:1", "b:2"]'])
def test_tokenizers(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    """Addresses are given with commas or as JSON."""
    monkeypatch.setenv("OMNI_FRONTEND_TOKENIZERS", given)
    assert FrontendSettings.load().tokenizers == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS", ""),
        ("TOKENIZERS", "localhost"),
        ("TOKENIZERS", "a:port"),
        ("TOKENIZERS", "a:70000"),
        ("TOKENIZERS", "a:1,a:1"),
        ("TOKENIZERS", '["a:1"'),
        ("PORT", "70000"),
        ("PORT", "http"),
        ("BODY_LIMIT_BYTES", "-1"),
        ("DRAIN_SECONDS", "-1"),
        ("REQUEST_TIMEOUT_S", "0"),
        ("LOG_LEVEL", "LOUD"),
        ("NO_SUCH_SETTING", "1"),
    ],
)
def test_wrong_settings(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A wrong value and an unknown name are one line that names the variable."""
    monkeypatch.setenv(f"OMNI_FRONTEND_{name}", value)
    with pytest.raises(SettingsError, match=f"OMNI_FRONTEND_{name}") as raised:
        FrontendSettings.load()
    assert "\n" not in str(raised.value)
