"""What is needed of a database of sessions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from services.chassis.errors import Conflict, NotFound
from services.frontend.sessions.session import Outcome, Page, Session, StoredMessage, Summary, Traits, Turn

# A turn whose process died holds its session for as long as this; living ones renew it.
LEASE_SECONDS = 6.0


class SessionStore(Protocol):
    """Keeps sessions. What a method has returned from is durable: it outlives the process and the machine's power.

    All methods block. They may be called from several threads at once, and by several processes on one database whose
    clocks agree to a second or two. A session that has expired, or belongs to another owner, is not found.

    All methods raise `Unavailable` (reason SESSIONS_DATABASE) when the database fails.
    """

    def create(self, session: Session, messages: Sequence[StoredMessage] = ()) -> None:
        """Keep a new session, with messages, parents before children.

        Raises:
            TooLarge: its owner has too many sessions.
        """

    def get(self, owner: str, session_id: str) -> Session:
        """Return a session.

        Raises:
            NotFound: there is none.
        """

    def page(self, owner: str, limit: int, after: str | None, query: str | None) -> Page:
        """Return an owner's sessions, the last changed first.

        Args:
            after: only those behind the session of this id.
            query: only those whose title or a message's text holds it; case does not count.

        Raises:
            NotFound: there is no session `after`.
        """

    def change(self, owner: str, session_id: str, amend: Callable[[Traits], Traits], head: str | None) -> Session:
        """Change a session's traits and, where one is given, its head, and return it.

        Raises:
            NotFound: there is no such session, or `head` is none of its messages.
            Conflict: the head would change while a turn is under way.
        """

    def delete(self, owner: str, session_id: str) -> None:
        """Delete a session and its messages. A turn that is under way finds it gone.

        Raises:
            NotFound: there is none.
        """

    def path(self, owner: str, session_id: str, to: str | None) -> Sequence[StoredMessage]:
        """Return the messages from the root to one, oldest first; none for None.

        Raises:
            NotFound: there is no such session or message.
        """

    def tree(self, owner: str, session_id: str) -> Sequence[StoredMessage]:
        """Return all messages, oldest first, so that parents come before children.

        Raises:
            NotFound: there is no such session.
        """

    def delete_message(self, owner: str, session_id: str, message_id: str) -> None:
        """Delete a message with all that follows it. A head among them moves to its parent.

        Raises:
            NotFound: there is no such session or message.
            Conflict: a turn is under way.
        """

    def begin_turn(self, owner: str, turn: Turn) -> None:
        """Take the session's lease, keep the turn's messages and make the answer, still running, the head.

        Raises:
            NotFound: there is no such session, or its message `parent_id` is gone.
            Conflict: a turn is under way, or moved the head meanwhile.
            TooLarge: the session would have too many messages, or too long ones.
        """

    def renew(self, turns: Sequence[tuple[Turn, Outcome]]) -> Collection[str]:
        """Hold the leases of turns for longer and keep what there is of their answers.

        Returns: holders of those whose session is gone or whose lease was lost.
        """

    def finish_turn(self, turn: Turn, outcome: Outcome, summary: Summary | None) -> None:
        """Keep the answer and give the lease back.

        Raises:
            NotFound: the session was deleted meanwhile.
        """

    def abandon_turn(self, turn: Turn) -> None:
        """Take the turn back as if it had never begun. A session that is gone is left alone."""

    def expire(self) -> int:
        """Delete some sessions that have expired and return how many."""

    def close(self) -> None:
        """Give the connections back."""


def unknown_session() -> NotFound:
    """Return the error for a session that is not there."""
    return NotFound(
        "there is no such session; GET /v1/sessions lists them", param="session_id", reason="SESSION_NOT_FOUND"
    )


def unknown_message(param: str = "message_id") -> NotFound:
    """Return the error for a message that is not there."""
    return NotFound(
        "the session has no such message; GET /v1/sessions/{id}/messages?all=true lists them",
        param=param,
        reason="MESSAGE_NOT_FOUND",
    )


def busy() -> Conflict:
    """Return the error for a session on which a turn is under way."""
    return Conflict(
        "another turn is under way in this session; wait for its end or cancel it, then send this one again",
        param="session_id",
        reason="SESSION_BUSY",
        retry_after=1,
    )
