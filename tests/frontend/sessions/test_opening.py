"""Which database the settings name."""

from __future__ import annotations

from pathlib import Path

from services.frontend.sessions.opening import sessions_url
from services.frontend.settings import FrontendSettings


def test_choice() -> None:
    """A URL goes before the directory for state, and without both no sessions are kept."""
    state, url = Path("/var/lib/x"), "postgresql://u:secret@h/d"
    assert sessions_url(FrontendSettings()) is None
    assert sessions_url(FrontendSettings(state_dir=state)) == "sqlite:////var/lib/x/sessions.db"
    settings = FrontendSettings.model_validate({"state_dir": state, "sessions_url": url})
    assert sessions_url(settings) == url
    assert "secret" not in repr(settings)
