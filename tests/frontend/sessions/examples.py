"""Sessions, messages and turns that tests keep."""

from __future__ import annotations

from typing import Any

from services.frontend.sessions.port import SessionStore
from services.frontend.sessions.session import (
    Outcome,
    Session,
    StoredMessage,
    Traits,
    Turn,
    new_message_id,
    new_session_id,
)

OWNER = "owner-1"


def session(owner: str = OWNER, now: float = 1_000_000.0, **traits: Any) -> Session:
    """A new session."""
    return Session(new_session_id(), owner, Traits(**traits), now, now)


def message(text: str, parent_id: str | None = None, role: str = "user", **more: Any) -> StoredMessage:
    """A complete message."""
    return StoredMessage(new_message_id(), parent_id, role, Outcome("complete", text), 1_000_000.0, **more)


def turn(session_id: str, *texts: str, parent_id: str | None = None, head: str | None = None) -> Turn:
    """A turn with user messages, each the child of the one before."""
    messages: list[StoredMessage] = []
    last = parent_id
    for text in texts:
        messages.append(message(text, last))
        last = messages[-1].id
    answer = StoredMessage(new_message_id(), last, "assistant", Outcome("running"), 1_000_000.0)
    return Turn(session_id, f"holder-{answer.id}", parent_id, head, messages, answer)


def take_turn(
    store: SessionStore, session_id: str, text: str, answer: str, parent_id: str | None = None, head: str | None = None
) -> Turn:
    """Begin and finish a turn."""
    taken = turn(session_id, text, parent_id=parent_id, head=head)
    store.begin_turn(OWNER, taken)
    store.finish_turn(taken, Outcome("complete", answer, finish_reason="stop"), None)
    return taken
