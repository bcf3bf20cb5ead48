"""Finding rows of the tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, or_, select

from services.frontend.sessions.port import unknown_session
from services.frontend.sessions.tables import messages, sessions


def is_visible(now: float) -> ColumnElement[bool]:
    """Return the condition that a session has not expired. One with a turn under way has not."""
    return or_(sessions.c.expires_at.is_(None), sessions.c.expires_at > now, sessions.c.lease_until > now)


def found(
    connection: Connection, owner: str, session_id: str, now: float, *, lock: bool = False, param: str = "session_id"
) -> Row[Any]:
    """Return a session's row.

    Args:
        lock: keep others from changing it until the transaction's end.

    Raises:
        NotFound: there is none, it has expired or is another owner's.
    """
    wanted = select(sessions).where(sessions.c.id == session_id, sessions.c.owner == owner, is_visible(now))
    # PostgreSQL fails where it is asked for a text with NUL, which no id has.
    asked = "\0" not in session_id
    row = connection.execute(wanted.with_for_update() if lock else wanted).one_or_none() if asked else None
    if row is None:
        error = unknown_session()
        error.param = param
        raise error
    return row


def structure_of(connection: Connection, session_id: str) -> dict[str, str | None]:
    """Return the parents of all messages of a session, oldest first."""
    wanted = select(messages.c.id, messages.c.parent_id).where(messages.c.session_id == session_id)
    return {row.id: row.parent_id for row in connection.execute(wanted.order_by(messages.c.number))}
