"""Sessions in a SQL database."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, func, insert, or_, select, tuple_, update

from services.chassis.errors import TooLarge
from services.frontend.sessions import rows, sql_turns
from services.frontend.sessions.database import Database
from services.frontend.sessions.port import busy, unknown_message
from services.frontend.sessions.session import (
    MAX_SESSIONS_PER_OWNER,
    Outcome,
    Page,
    Session,
    StoredMessage,
    Summary,
    Traits,
    Turn,
)
from services.frontend.sessions.sql_rows import found, is_visible, structure_of
from services.frontend.sessions.tables import folded, messages, sessions

# Deleted in one transaction, so that it stays short.
_EXPIRED_AT_ONCE = 100


class SqlSessionStore:
    """A `SessionStore`.

    Args:
        url: of the database; see `Database`.
        clock: gives Unix time in seconds.
        max_sessions: most sessions of one owner.

    Raises:
        SettingsError: the database cannot be used.
    """

    def __init__(
        self, url: str, clock: Callable[[], float] = time.time, max_sessions: int = MAX_SESSIONS_PER_OWNER
    ) -> None:
        self._database = Database(url)
        self._clock = clock
        self._max_sessions = max_sessions

    def create(self, session: Session, messages_of_it: Sequence[StoredMessage] = ()) -> None:
        """Keep a new session with its messages."""
        with self._database.writing() as connection:
            count = select(func.count()).where(sessions.c.owner == session.owner)
            if connection.execute(count).scalar_one() >= self._max_sessions:
                raise TooLarge(
                    f"there may be at most {self._max_sessions} sessions; delete some first", reason="TOO_MANY_SESSIONS"
                )
            row = rows.session_row(session)
            row |= {"message_count": len(messages_of_it), "size_bytes": sum(each.size_bytes for each in messages_of_it)}
            connection.execute(insert(sessions).values(row))
            # One by one, so that their numbers follow their order.
            for message in messages_of_it:
                connection.execute(insert(messages).values(rows.message_row(session.id, message)))

    def get(self, owner: str, session_id: str) -> Session:
        """Return a session."""
        now = self._clock()
        with self._database.reading() as connection:
            return rows.session_of(found(connection, owner, session_id, now), now)

    def page(self, owner: str, limit: int, after: str | None, query: str | None) -> Page:
        """Return an owner's sessions, the last changed first."""
        now = self._clock()
        wanted = [sessions.c.owner == owner, is_visible(now)]
        if query:
            text = folded(query)
            said = exists().where(
                and_(messages.c.session_id == sessions.c.id, messages.c.folded.contains(text, autoescape=True))
            )
            wanted.append(or_(sessions.c.folded_title.contains(text, autoescape=True), said))
        with self._database.reading() as connection:
            if after is not None:
                last = found(connection, owner, after, now, param="after")
                wanted.append(tuple_(sessions.c.updated_at, sessions.c.id) < (last.updated_at, last.id))
            newest = (sessions.c.updated_at.desc(), sessions.c.id.desc())
            listed = connection.execute(select(sessions).where(*wanted).order_by(*newest).limit(limit + 1)).all()
        return Page([rows.session_of(row, now) for row in listed[:limit]], len(listed) > limit)

    def change(self, owner: str, session_id: str, amend: Callable[[Traits], Traits], head: str | None) -> Session:
        """Change a session's traits and head and return it."""
        now = self._clock()
        with self._database.writing() as connection:
            row = found(connection, owner, session_id, now, lock=True)
            traits = amend(rows.traits_of(row))
            values: dict[str, Any] = rows.traits_row(traits, row.taken_title) | sql_turns.touched(traits, now)
            if head is not None and head != row.head:
                if rows.is_busy(row, now):
                    raise busy()
                if head not in structure_of(connection, session_id):
                    raise unknown_message("head")
                values["head"] = head
            connection.execute(update(sessions).where(sessions.c.id == session_id).values(values))
            return rows.session_of(found(connection, owner, session_id, now), now)

    def delete(self, owner: str, session_id: str) -> None:
        """Delete a session and its messages."""
        with self._database.writing() as connection:
            found(connection, owner, session_id, self._clock(), lock=True)
            connection.execute(delete(sessions).where(sessions.c.id == session_id))

    def path(self, owner: str, session_id: str, to: str | None) -> Sequence[StoredMessage]:
        """Return the messages from the root to one, oldest first."""
        now = self._clock()
        with self._database.reading() as connection:
            session = found(connection, owner, session_id, now)
            parents = structure_of(connection, session_id)
            if to is not None and to not in parents:
                raise unknown_message()
            on_path: list[str] = []
            while to is not None:
                on_path.append(to)
                to = parents[to]
            return _read(connection, session, parents, on_path, now)

    def tree(self, owner: str, session_id: str) -> Sequence[StoredMessage]:
        """Return all messages, oldest first."""
        now = self._clock()
        with self._database.reading() as connection:
            session = found(connection, owner, session_id, now)
            parents = structure_of(connection, session_id)
            return _read(connection, session, parents, list(parents), now)

    def delete_message(self, owner: str, session_id: str, message_id: str) -> None:
        """Delete a message with all that follows it."""
        now = self._clock()
        with self._database.writing() as connection:
            row = found(connection, owner, session_id, now, lock=True)
            if rows.is_busy(row, now):
                raise busy()
            parents = structure_of(connection, session_id)
            if message_id not in parents:
                raise unknown_message()
            gone = {message_id}
            # Parents come before their children.
            for child, parent in parents.items():
                if parent in gone:
                    gone.add(child)
            sql_turns.remove(connection, row, gone, parents[message_id], now)

    def begin_turn(self, owner: str, turn: Turn) -> None:
        """Take the session's lease and keep the turn's messages."""
        with self._database.writing() as connection:
            # After the wait for other writers, which may take most of a lease.
            now = self._clock()
            row = found(connection, owner, turn.session_id, now, lock=True)
            if rows.is_busy(row, now) or row.head != turn.expected_head:
                raise busy()
            sql_turns.begin(connection, row, turn, now)

    def renew(self, turns: Sequence[tuple[Turn, Outcome]]) -> Collection[str]:
        """Hold leases for longer and keep what there is of the answers."""
        with self._database.writing() as connection:
            return sql_turns.renew(connection, turns, self._clock())

    def finish_turn(self, turn: Turn, outcome: Outcome, summary: Summary | None) -> None:
        """Keep the answer and give the lease back."""
        with self._database.writing() as connection:
            sql_turns.finish(connection, turn, outcome, summary, self._clock())

    def abandon_turn(self, turn: Turn) -> None:
        """Take the turn back as if it had never begun."""
        with self._database.writing() as connection:
            sql_turns.abandon(connection, turn, self._clock())

    def expire(self) -> int:
        """Delete some sessions that have expired and return how many."""
        now = self._clock()
        with self._database.writing() as connection:
            gone = select(sessions.c.id).where(~is_visible(now)).limit(_EXPIRED_AT_ONCE)
            # Told again for a row that another transaction uses meanwhile: of that only this is looked at once more.
            deleted = delete(sessions).where(sessions.c.id.in_(gone.scalar_subquery()), ~is_visible(now))
            return connection.execute(deleted).rowcount

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


def _read(
    connection: Connection, session: Row[Any], parents: dict[str, str | None], ids: list[str], now: float
) -> list[StoredMessage]:
    siblings: dict[str | None, list[str]] = {}
    for message_id, parent in parents.items():
        siblings.setdefault(parent, []).append(message_id)
    own = select(messages).where(messages.c.session_id == session.id)
    if len(ids) < len(parents):
        own = own.where(messages.c.id.in_(ids))
    busy_now = rows.is_busy(session, now)
    return [
        rows.message_of(row, busy_now, siblings) for row in connection.execute(own.order_by(messages.c.number)).all()
    ]
