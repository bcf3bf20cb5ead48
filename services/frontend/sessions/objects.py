"""Sessions and messages as JSON objects of the API."""

from __future__ import annotations

from typing import Any

from services.frontend.sessions.session import Session, StoredMessage


def session_object(session: Session) -> dict[str, Any]:
    """Return a session as an object. Times are whole Unix seconds."""
    traits = session.traits
    return {
        "id": session.id,
        "object": "session",
        "title": traits.title or session.taken_title,
        "model": traits.model,
        "system": traits.system,
        "context_policy": traits.context_policy,
        "ttl_seconds": traits.ttl_seconds,
        "created_at": int(session.created_at),
        "updated_at": int(session.updated_at),
        "expires_at": None if session.expires_at is None else int(session.expires_at),
        "head": session.head,
        "summary": session.summary,
        "metadata": dict(traits.metadata),
        "message_count": session.message_count,
        "busy": session.busy,
    }


def message_object(session_id: str, message: StoredMessage) -> dict[str, Any]:
    """Return a message as an object. Members that only some messages have are left out of the others."""
    outcome = message.outcome
    some = {
        "parts": message.parts,
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "reasoning": outcome.reasoning,
        "tool_calls": outcome.tool_calls,
        **(outcome.findings or {}),
    }
    return {
        "id": message.id,
        "object": "session.message",
        "session_id": session_id,
        "parent_id": message.parent_id,
        "role": message.role,
        "content": outcome.content,
        "status": outcome.status,
        "finish_reason": outcome.finish_reason,
        "created_at": int(message.created_at),
        "model": outcome.model,
        "usage": outcome.usage,
        "stats": outcome.stats,
        "context": outcome.context,
        "siblings": list(message.siblings),
        **{name: value for name, value in some.items() if value},
    }
