"""The sessions' database, by the frontend's settings."""

from __future__ import annotations

import asyncio

from services.frontend.sessions.sessions import Sessions
from services.frontend.sessions.sql_store import SqlSessionStore
from services.frontend.settings import FrontendSettings

FILE_NAME = "sessions.db"


def sessions_url(settings: FrontendSettings) -> str | None:
    """Return the database's URL, or None where no sessions are kept."""
    if settings.sessions_url is not None:
        return settings.sessions_url.get_secret_value()
    if settings.state_dir is not None:
        return f"sqlite:///{settings.state_dir.absolute() / FILE_NAME}"
    return None


async def open_sessions(settings: FrontendSettings) -> Sessions:
    """Open the database.

    Raises:
        SettingsError: it cannot be used.
    """
    url = sessions_url(settings)
    return Sessions(None if url is None else await asyncio.to_thread(SqlSessionStore, url))


def check_database(settings: FrontendSettings) -> None:
    """Check that the database can be used, where sessions are kept.

    Raises:
        SettingsError: it cannot.
    """
    url = sessions_url(settings)
    if url is not None:
        SqlSessionStore(url).close()
