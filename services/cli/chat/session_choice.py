"""Going on with a session that the service keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from services.cli.chat.display import Display
from services.cli.chat.session_history import SessionHistory
from services.cli.control_text import printable_line
from services.cli.service_client import Message
from services.cli.service_failure import ServiceFailure
from services.cli.sessions_client import Session, SessionsClient

_TITLE_CHARACTERS = 60


def open_session(sessions: SessionsClient, session_id: str | None, display: Display | None) -> SessionHistory:
    """Return a session's history, and show where it stopped.

    Args:
        sessions: the service's.
        session_id: None takes the one that was used last.
        display: where it is shown; None shows nothing.

    Raises:
        ServiceFailure: there is no such session, or none at all.
    """
    session, messages = asyncio.run(_fetched(sessions, session_id))
    if display is None:
        return SessionHistory(sessions, session=session)
    display.note(f"session {session['id']} · {printable_line(session.get('title') or 'untitled')}")
    for message in messages[-2:]:
        display.show(f"{'> ' if message.get('role') == 'user' else ''}{message.get('content') or ''}")
    return SessionHistory(sessions, session=session)


def session_lines(sessions: Sequence[Session], current: str | None = None) -> Sequence[str]:
    """Return a line for each session: id, when it was used last, number of messages, title; the current one marked."""
    lines = []
    for session in sessions:
        title = printable_line(session.get("title") or "untitled")
        shown = title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…"
        count = session.get("message_count", "?")
        mark = "" if current is None else "* " if session["id"] == current else "  "
        lines.append(f"{mark}{printable_line(session['id'])}  {_when(session)}  {count!s:>4}  {shown}")
    return lines


async def _fetched(sessions: SessionsClient, session_id: str | None) -> tuple[Session, Sequence[Message]]:
    if session_id is None:
        latest = await sessions.listed(1)
        if not latest:
            raise ServiceFailure("there is no session yet to go on with; begin one without --resume")
        session = latest[0]
    else:
        session = await sessions.get(session_id)
    return session, await sessions.messages(str(session["id"]))


def _when(session: Session) -> str:
    moment = session.get("updated_at")
    if not isinstance(moment, int | float):
        return "unknown time    "
    return datetime.fromtimestamp(moment).astimezone().strftime("%Y-%m-%d %H:%M")
