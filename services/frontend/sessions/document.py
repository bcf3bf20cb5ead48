"""A session as one JSON document, to be taken elsewhere and back."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

from services.chassis.errors import InvalidRequest, TooLarge
from services.frontend.fields import UINT32, Fields
from services.frontend.messages import MAX_PARTS, parse_tool_calls
from services.frontend.sessions.objects import message_object, session_object
from services.frontend.sessions.session import (
    MAX_SESSION_BYTES,
    MAX_SESSION_MESSAGES,
    MAX_SIBLINGS,
    MAX_SUMMARY_CHARS,
    Outcome,
    Session,
    Status,
    StoredMessage,
    new_message_id,
    new_session_id,
    title_of,
)
from services.frontend.sessions.traits import parse_traits
from services.frontend.sink import FinishReason

FORMAT = "session.export"
VERSION = 1
_MAX_ID_CHARS = 64
_ROLES = ("user", "assistant", "tool")
_REASONS: tuple[str, ...] = get_args(FinishReason)
_FINDINGS = ("filter_matches", "format_faults")


def exported(session: Session, messages: list[StoredMessage]) -> dict[str, Any]:
    """Return the document of a session and all its messages."""
    return {
        "object": FORMAT,
        "version": VERSION,
        "session": session_object(session) | {"summary_upto": session.summary_upto},
        "messages": [message_object(session.id, message) for message in messages],
    }


def imported(document: dict[str, Any], owner: str, now: float) -> tuple[Session, list[StoredMessage]]:
    """Read a document. All ids are made anew, and an answer that was running counts as partial.

    Raises:
        InvalidRequest: it is no such document.
        TooLarge: it has more messages, or longer ones, than a session may have.
    """
    fields = Fields(document)
    if fields.value("object") != FORMAT or fields.value("version") != VERSION:
        raise InvalidRequest(
            f"the body must be a document of GET /v1/sessions/{{id}}/export: object {FORMAT}, version {VERSION}",
            param="object",
        )
    told = fields.nested("session")
    if told is None:
        raise InvalidRequest("session is required: an object as in an export", param="session")
    given = fields.array("messages", MAX_SESSION_MESSAGES) or []
    ids: dict[str, str] = {}
    messages: list[StoredMessage] = []
    siblings: Counter[str | None] = Counter()
    size_bytes = 0
    for index, value in enumerate(given):
        path = f"messages[{index}]"
        if not isinstance(value, dict):
            raise InvalidRequest(f"{path} must be an object", param=path)
        messages.append(_message(Fields(value, f"{path}."), ids, now))
        siblings[messages[-1].parent_id] += 1
        if siblings[messages[-1].parent_id] > MAX_SIBLINGS:
            raise TooLarge(f"a session may have at most {MAX_SIBLINGS} messages after one; send less", param=path)
        size_bytes += messages[-1].size_bytes
        if size_bytes > MAX_SESSION_BYTES:
            raise TooLarge(f"a session may have at most {MAX_SESSION_BYTES} bytes of text; send less", param=path)
    head = _known(told, "head", ids)
    summary_upto = _known(told, "summary_upto", ids)
    traits = parse_traits(told)
    first = next((message.outcome.content for message in messages if message.role == "user"), "")
    session = Session(
        id=new_session_id(),
        owner=owner,
        traits=traits,
        created_at=now,
        updated_at=now,
        expires_at=None if traits.ttl_seconds is None else now + traits.ttl_seconds,
        taken_title=title_of(first),
        head=head,
        summary=told.string("summary", MAX_SUMMARY_CHARS) if summary_upto is not None else None,
        summary_upto=summary_upto,
        message_count=len(messages),
    )
    return session, messages


def _message(fields: Fields, ids: dict[str, str], now: float) -> StoredMessage:
    parent_id = _known(fields, "parent_id", ids)
    own_id = fields.string("id", _MAX_ID_CHARS)
    if not own_id or own_id in ids:
        raise InvalidRequest(f"{fields.path('id')} must be an id of its own", param=fields.path("id"))
    ids[own_id] = new_message_id()
    role = _one_of(fields, "role", _ROLES)
    if role is None:
        raise InvalidRequest(f"{fields.path('role')} is required", param=fields.path("role"))
    status: Status = "complete" if fields.value("status") == "complete" else "partial"
    outcome = Outcome(
        status=status,
        content=fields.string("content") or "",
        reasoning=fields.string("reasoning") or "",
        tool_calls=_tool_calls(fields),
        finish_reason=_one_of(fields, "finish_reason", _REASONS),
        model=fields.string("model"),
        usage=_object(fields, "usage"),
        stats=_object(fields, "stats"),
        context=_object(fields, "context"),
        findings={name: fields.value(name) for name in _FINDINGS if fields.array(name, UINT32)} or None,
    )
    created_at = fields.number("created_at", 0, UINT32)
    return StoredMessage(
        id=ids[own_id],
        parent_id=parent_id,
        role=role,
        outcome=outcome,
        created_at=now if created_at is None else created_at,
        parts=_parts(fields),
        name=fields.string("name"),
        tool_call_id=fields.string("tool_call_id"),
    )


def _known(fields: Fields, name: str, ids: dict[str, str]) -> str | None:
    given = fields.string(name, _MAX_ID_CHARS)
    if given is not None and given not in ids:
        raise InvalidRequest(
            f"{fields.path(name)} must be the id of a message of the document, for a parent one before its child",
            param=fields.path(name),
        )
    return None if given is None else ids[given]


def _one_of(fields: Fields, name: str, allowed: tuple[str, ...]) -> str | None:
    given = fields.string(name)
    if given is not None and given not in allowed:
        raise InvalidRequest(f"{fields.path(name)} must be one of {', '.join(allowed)}", param=fields.path(name))
    return given


def _object(fields: Fields, name: str) -> dict[str, Any] | None:
    given: dict[str, Any] | None = fields.value(name) if fields.nested(name) is not None else None
    return given


def _parts(fields: Fields) -> list[str] | None:
    parts = fields.array("parts", MAX_PARTS)
    if parts is not None and not all(isinstance(part, str) for part in parts):
        raise InvalidRequest(f"{fields.path('parts')} must hold strings", param=fields.path("parts"))
    return parts or None


def _tool_calls(fields: Fields) -> list[dict[str, Any]]:
    if fields.value("tool_calls") and fields.value("role") != "assistant":
        path = fields.path("tool_calls")
        raise InvalidRequest(f"{path} is for role assistant only", param=path)
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
        for call in parse_tool_calls(fields)
    ]
