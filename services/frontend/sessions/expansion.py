"""A turn planned: the body that a caller sent for a session, made into that of the whole conversation."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.chassis.errors import InvalidRequest, ServiceError
from services.frontend.fields import Fields
from services.frontend.messages import Message, parse_messages
from services.frontend.sessions.port import SessionStore, busy, unknown_message
from services.frontend.sessions.session import Outcome, Session, StoredMessage, Turn, new_holder, new_message_id

Body = dict[str, Any]

SESSION_FIELDS = ("session_id", "parent_message_id", "continue_message_id")
_MAX_ID_CHARS = 64
_ROLES = ("user", "tool")


@dataclass(frozen=True, slots=True)
class Plan:
    """A turn that may begin.

    Args:
        owner: of the session.
        turn: what is kept when it begins.
        sent_ids: ids of the messages that the model gets and that are no system messages.
        continued: the answer that is continued.
    """

    owner: str
    turn: Turn
    sent_ids: Sequence[str]
    continued: Outcome | None

    @property
    def member(self) -> dict[str, Any]:
        """The member `session` of the answer."""
        new = [message.id for message in self.turn.messages]
        return {"id": self.turn.session_id, "message_ids": new, "answer_id": self.turn.answer.id}


@dataclass(frozen=True, slots=True)
class Expansion:
    """A planned turn as an ordinary request.

    Args:
        body: holds the whole conversation.
        summary: of what came before the conversation in `body`; "" where nothing did.
    """

    plan: Plan
    body: Body
    summary: str


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in its session a turn goes: after the last message of a path."""

    parent_id: str | None
    path: Sequence[StoredMessage]
    continued: StoredMessage | None = None


def expand(store: SessionStore, owner: str, body: Body) -> Expansion:
    """Plan the turn that a body with a `session_id` asks for. Nothing is kept yet.

    Raises:
        InvalidRequest: the body's fields are wrong, or exclude each other.
        NotFound: there is no such session or message.
        Conflict: a turn is under way.
        Unavailable: the database fails.
    """
    fields = Fields(body)
    session_id = fields.string("session_id", _MAX_ID_CHARS) or ""
    _refuse_others(body)
    session = store.get(owner, session_id)
    if session.busy:
        raise busy()
    place = _place(store, session, fields)
    summary, history = _after_summary(session, place.path, body)
    sent = [_as_sent(message) for message in history]
    if session.traits.system is not None:
        sent.insert(0, {"role": "system", "content": session.traits.system})
    typed = fields.value("messages")
    if typed is None:
        typed = []
    if not isinstance(typed, list):
        raise InvalidRequest("messages must be a list", param="messages")
    new = _new_messages(sent, typed, place)
    whole = {name: value for name, value in body.items() if name not in SESSION_FIELDS}
    whole["messages"] = [*sent, *typed]
    for name, default in (("model", session.traits.model), ("context_policy", session.traits.context_policy)):
        if default is not None and whole.get(name) is None:
            whole[name] = default
    if place.continued is not None:
        whole["continue_final_message"] = True
    answer = StoredMessage(
        new_message_id(), new[-1].id if new else place.parent_id, "assistant", Outcome("running"), time.time()
    )
    turn = Turn(session_id, new_holder(), place.parent_id, session.head, new, answer)
    sent_ids = [message.id for message in (*history, *new)]
    continued = None if place.continued is None else place.continued.outcome
    return Expansion(Plan(owner, turn, sent_ids, continued), whole, summary)


def _refuse_others(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise InvalidRequest("n must be 1 with session_id: a session keeps one answer a turn", param="n")
    if body.get("continue_final_message") not in (None, False):
        raise InvalidRequest(
            "continue_final_message cannot be set with session_id; name the answer in continue_message_id",
            param="continue_final_message",
        )


def _place(store: SessionStore, session: Session, fields: Fields) -> _Place:
    parent_id = fields.string("parent_message_id", _MAX_ID_CHARS)
    continue_id = fields.string("continue_message_id", _MAX_ID_CHARS)
    if continue_id is None:
        if "parent_message_id" not in set(fields):
            parent_id = session.head
        return _Place(parent_id, _path(store, session, parent_id, "parent_message_id"))
    if "parent_message_id" in set(fields) or fields.value("messages"):
        raise InvalidRequest(
            "continue_message_id goes without parent_message_id and messages; leave them out",
            param="continue_message_id",
        )
    path = _path(store, session, continue_id, "continue_message_id")
    continued = path[-1]
    if continued.role != "assistant" or continued.outcome.tool_calls or not continued.outcome.content:
        raise InvalidRequest(
            "continue_message_id must be that of an answer with text and without tool calls",
            param="continue_message_id",
        )
    return _Place(continued.parent_id, path, continued)


def _path(store: SessionStore, session: Session, to: str | None, param: str) -> Sequence[StoredMessage]:
    try:
        return store.path(session.owner, session.id, to)
    except ServiceError as error:
        if error.reason == unknown_message().reason:
            error.param = param
        raise


def _after_summary(
    session: Session, path: Sequence[StoredMessage], body: Mapping[str, Any]
) -> tuple[str, Sequence[StoredMessage]]:
    policy = body.get("context_policy") or session.traits.context_policy
    if session.summary and policy == "summarize":
        for position, message in enumerate(path):
            later = path[position + 1 :]
            # A model is given at least one message: the answer that is continued may be the summary's last.
            if message.id == session.summary_upto and (later or body.get("messages")):
                return session.summary, later
    return "", path


def _as_sent(message: StoredMessage) -> Body:
    """Return a message as a request holds it."""
    outcome = message.outcome
    sent: Body = {"role": message.role, "content": outcome.content}
    if message.parts:
        sent["content"] = [{"type": "text", "text": part} for part in message.parts]
    if outcome.tool_calls:
        sent |= {"tool_calls": list(outcome.tool_calls), "content": outcome.content or None}
    for name, value in (
        ("name", message.name),
        ("tool_call_id", message.tool_call_id),
        ("reasoning", outcome.reasoning),
    ):
        if value:
            sent[name] = value
    return sent


def _new_messages(sent: list[Body], typed: list[Any], place: _Place) -> list[StoredMessage]:
    """Return what was typed as messages to keep, each the child of the one before."""
    for index, value in enumerate(typed):
        path = f"messages[{index}].role"
        if isinstance(value, dict) and value.get("role") not in _ROLES:
            raise InvalidRequest(
                f"{path} must be one of {', '.join(_ROLES)} with session_id: the session has the other messages,"
                " and its system message is its field system",
                param=path,
            )
    if not typed and place.continued is None and (not place.path or place.path[-1].role not in _ROLES):
        raise InvalidRequest(
            "messages must hold what is new, or parent_message_id be a message to give another answer to",
            param="messages",
        )
    try:
        parsed = parse_messages(Fields({"messages": [*sent, *typed]}))[len(sent) :]
    except ServiceError as error:
        _name_as_typed(error, len(sent))
        raise
    kept: list[StoredMessage] = []
    parent_id, now = place.parent_id, time.time()
    for message in parsed:
        kept.append(_kept(message, parent_id, now))
        parent_id = kept[-1].id
    return kept


def _kept(message: Message, parent_id: str | None, now: float) -> StoredMessage:
    parts = message.content if isinstance(message.content, tuple) else None
    text = message.content if isinstance(message.content, str) else "\n".join(parts or ())
    return StoredMessage(
        new_message_id(),
        parent_id,
        message.role,
        Outcome("complete", text),
        now,
        parts,
        message.name,
        message.tool_call_id,
    )


def _name_as_typed(error: ServiceError, offset: int) -> None:
    """Name a message by its place among those that were sent, and one that the session has as such."""
    place = re.match(r"messages\[(\d+)\]", error.param or "")
    if place is not None and int(place[1]) < offset:
        error.message = "a message that the session holds cannot be sent; delete it, or go on before it"
        error.param = "session_id"
        return

    def moved(found: re.Match[str]) -> str:
        return f"messages[{int(found[1]) - offset}]"

    error.message = re.sub(r"messages\[(\d+)\]", moved, error.message)
    if error.param is not None:
        error.param = re.sub(r"messages\[(\d+)\]", moved, error.param)
