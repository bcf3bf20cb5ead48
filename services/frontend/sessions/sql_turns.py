"""A turn's steps in a SQL database, each within a transaction of the caller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from services.chassis.errors import NotFound, TooLarge
from services.frontend.sessions import rows
from services.frontend.sessions.port import LEASE_SECONDS, unknown_message
from services.frontend.sessions.session import (
    MAX_SESSION_BYTES,
    MAX_SESSION_MESSAGES,
    MAX_SIBLINGS,
    Outcome,
    Summary,
    Traits,
    Turn,
    title_of,
)
from services.frontend.sessions.sql_rows import structure_of
from services.frontend.sessions.tables import messages, sessions

_FREE: dict[str, Any] = {"lease_holder": None, "lease_until": 0.0}


def touched(traits: Traits, now: float) -> dict[str, Any]:
    """Return the columns of a session that change whenever it is used."""
    return {"updated_at": now, "expires_at": None if traits.ttl_seconds is None else now + traits.ttl_seconds}


def begin(connection: Connection, row: Row[Any], turn: Turn, now: float) -> None:
    """Begin a turn on a session whose row is locked and free; see `SessionStore.begin_turn`."""
    parents = structure_of(connection, row.id)
    if turn.parent_id is not None and turn.parent_id not in parents:
        raise unknown_message("parent_message_id")
    new = [*turn.messages, turn.answer]
    size_bytes = row.size_bytes + sum(message.size_bytes for message in new)
    if row.message_count + len(new) > MAX_SESSION_MESSAGES:
        raise _full(f"{MAX_SESSION_MESSAGES} messages")
    if sum(parent == turn.parent_id for parent in parents.values()) >= MAX_SIBLINGS:
        raise _full(f"{MAX_SIBLINGS} messages after one")
    if size_bytes > MAX_SESSION_BYTES:
        raise _full(f"{MAX_SESSION_BYTES} bytes of text")
    # What a process that died has left.
    left = update(messages).where(messages.c.session_id == row.id, messages.c.status == "running")
    connection.execute(left.values(status="partial"))
    for message in new:
        connection.execute(insert(messages).values(rows.message_row(row.id, message)))
    said = next((message.outcome.content for message in turn.messages if message.role == "user"), "")
    taken_title = row.taken_title or title_of(said)
    values = {
        "head": turn.answer.id,
        "message_count": row.message_count + len(new),
        "size_bytes": size_bytes,
        "taken_title": taken_title,
        "folded_title": rows.folded_title(row.title, taken_title),
        "lease_holder": turn.holder,
        "lease_until": now + LEASE_SECONDS,
        **touched(rows.traits_of(row), now),
    }
    connection.execute(update(sessions).where(sessions.c.id == row.id).values(values))


def renew(connection: Connection, turns: Sequence[tuple[Turn, Outcome]], now: float) -> list[str]:
    """Hold leases for longer and keep what there is of the answers; see `SessionStore.renew`."""
    session_ids, holders = [turn.session_id for turn, _ in turns], [turn.holder for turn, _ in turns]
    own = (sessions.c.id.in_(session_ids), sessions.c.lease_holder.in_(holders))
    connection.execute(update(sessions).where(*own).values(lease_until=now + LEASE_SECONDS))
    held = set(connection.execute(select(sessions.c.lease_holder).where(*own)).scalars())
    answers = [{"answer_id": turn.answer.id, **_columns(outcome)} for turn, outcome in turns if turn.holder in held]
    if answers:
        connection.execute(update(messages).where(messages.c.id == bindparam("answer_id")), answers)
    return [holder for holder in holders if holder not in held]


def finish(connection: Connection, turn: Turn, outcome: Outcome, summary: Summary | None, now: float) -> None:
    """Keep the answer and free the session; see `SessionStore.finish_turn`."""
    own = sessions.c.id == turn.session_id
    row = connection.execute(select(sessions).where(own).with_for_update()).one_or_none()
    if row is None or not _keep(connection, turn, outcome):
        raise NotFound(
            "the session, or this answer's place in it, was deleted while the answer was written",
            param="session_id",
            reason="SESSION_NOT_FOUND",
        )
    values = touched(rows.traits_of(row), now) | {"size_bytes": _size_bytes(connection, turn.session_id)}
    if summary is not None:
        values |= {"summary": summary.text, "summary_upto": summary.upto}
    if row.lease_holder == turn.holder:
        values |= _FREE
    connection.execute(update(sessions).where(own).values(values))


def abandon(connection: Connection, turn: Turn, now: float) -> None:
    """Take a turn back; see `SessionStore.abandon_turn`."""
    held = select(sessions).where(sessions.c.id == turn.session_id, sessions.c.lease_holder == turn.holder)
    row = connection.execute(held.with_for_update()).one_or_none()
    # Whoever took the lease over may have built on the messages.
    if row is not None:
        remove(connection, row, {turn.answer.id, *(message.id for message in turn.messages)}, turn.expected_head, now)


def remove(connection: Connection, row: Row[Any], gone: Collection[str], head: str | None, now: float) -> None:
    """Remove messages with all that follows them from a session whose row is locked, and free it.

    Args:
        head: takes the place of a head that is removed.
    """
    connection.execute(delete(messages).where(messages.c.session_id == row.id, messages.c.id.in_(gone)))
    count = row.message_count - len(gone)
    taken_title = row.taken_title if count else None
    values = {
        "message_count": count,
        "size_bytes": _size_bytes(connection, row.id),
        "taken_title": taken_title,
        "folded_title": rows.folded_title(row.title, taken_title),
        **_FREE,
        **touched(rows.traits_of(row), now),
    }
    if row.head in gone:
        values["head"] = head
    if row.summary_upto in gone:
        values |= {"summary": None, "summary_upto": None}
    connection.execute(update(sessions).where(sessions.c.id == row.id).values(values))


def _keep(connection: Connection, turn: Turn, outcome: Outcome) -> bool:
    own = update(messages).where(messages.c.id == turn.answer.id, messages.c.session_id == turn.session_id)
    return connection.execute(own.values(_columns(outcome))).rowcount == 1


def _columns(outcome: Outcome) -> dict[str, Any]:
    return rows.outcome_row(outcome) | {"size_bytes": outcome.size_bytes}


def _size_bytes(connection: Connection, session_id: str) -> int:
    total = select(func.coalesce(func.sum(messages.c.size_bytes), 0)).where(messages.c.session_id == session_id)
    return int(connection.execute(total).scalar_one())


def _full(bound: str) -> TooLarge:
    return TooLarge(
        f"a session may have at most {bound}; delete messages of it, or go on in a new session",
        param="session_id",
        reason="SESSION_FULL",
    )
