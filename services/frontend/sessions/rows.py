"""Between rows of the tables and sessions and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Row

from services.frontend.sessions.session import Outcome, Session, StoredMessage, Traits
from services.frontend.sessions.tables import folded


def session_row(session: Session) -> dict[str, Any]:
    """Return a new session as a row."""
    return {
        "id": session.id,
        "owner": session.owner,
        "taken_title": session.taken_title,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "expires_at": session.expires_at,
        "head": session.head,
        "summary": session.summary,
        "summary_upto": session.summary_upto,
        "message_count": 0,
        "size_bytes": 0,
        "lease_until": 0.0,
        **traits_row(session.traits, session.taken_title),
    }


def traits_row(traits: Traits, taken_title: str | None) -> dict[str, Any]:
    """Return a session's traits as part of a row."""
    return {
        "title": traits.title,
        "folded_title": folded_title(traits.title, taken_title),
        "model": traits.model,
        "system": traits.system,
        "context_policy": traits.context_policy,
        "ttl_seconds": traits.ttl_seconds,
        "metadata": dict(traits.metadata),
    }


def folded_title(title: str | None, taken_title: str | None) -> str:
    """Return the title that is shown, as it is searched."""
    return folded(title or taken_title or "")


def traits_of(row: Row[Any]) -> Traits:
    """Read a session's traits."""
    return Traits(row.title, row.model, row.system, row.context_policy, row.ttl_seconds, row.metadata)


def session_of(row: Row[Any], now: float) -> Session:
    """Read a session."""
    return Session(
        id=row.id,
        owner=row.owner,
        traits=traits_of(row),
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        taken_title=row.taken_title,
        head=row.head,
        summary=row.summary,
        summary_upto=row.summary_upto,
        message_count=row.message_count,
        busy=is_busy(row, now),
    )


def is_busy(row: Row[Any], now: float) -> bool:
    """Whether a turn is under way on a session."""
    return row.lease_holder is not None and row.lease_until > now


def message_row(session_id: str, message: StoredMessage) -> dict[str, Any]:
    """Return a message as a row."""
    return {
        "id": message.id,
        "session_id": session_id,
        "parent_id": message.parent_id,
        "role": message.role,
        "parts": None if message.parts is None else list(message.parts),
        "name": message.name,
        "tool_call_id": message.tool_call_id,
        "created_at": message.created_at,
        **outcome_row(message.outcome),
        "size_bytes": message.size_bytes,
    }


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as part of a row."""
    return {
        "content": outcome.content,
        "folded": folded(outcome.content),
        "reasoning": outcome.reasoning,
        "tool_calls": list(outcome.tool_calls),
        "status": outcome.status,
        "finish_reason": outcome.finish_reason,
        "model": outcome.model,
        "usage": outcome.usage,
        "stats": outcome.stats,
        "context": outcome.context,
        "findings": outcome.findings,
    }


def message_of(row: Row[Any], busy: bool, siblings: Mapping[str | None, list[str]]) -> StoredMessage:
    """Read a message.

    Args:
        busy: whether a turn is under way. An answer that runs without one was cut off with its process.
        siblings: ids of messages by their parent.
    """
    outcome = Outcome(
        status=row.status,
        content=row.content,
        reasoning=row.reasoning,
        tool_calls=row.tool_calls,
        finish_reason=row.finish_reason,
        model=row.model,
        usage=row.usage,
        stats=row.stats,
        context=row.context,
        findings=row.findings,
    )
    if outcome.status == "running" and not busy:
        outcome = replace(outcome, status="partial")
    return StoredMessage(
        id=row.id,
        parent_id=row.parent_id,
        role=row.role,
        outcome=outcome,
        created_at=row.created_at,
        parts=row.parts,
        name=row.name,
        tool_call_id=row.tool_call_id,
        siblings=tuple(siblings[row.parent_id]),
    )
