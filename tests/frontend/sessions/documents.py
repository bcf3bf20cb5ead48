"""Exported documents."""

from __future__ import annotations

from typing import Any


def document(*messages: dict[str, Any], **session: Any) -> dict[str, Any]:
    """An exported document."""
    return {"object": "session.export", "version": 1, "session": session, "messages": list(messages)}


TREE = (
    {"id": "a", "parent_id": None, "role": "user", "content": "Hello", "status": "complete", "created_at": 7},
    {
        "id": "b",
        "parent_id": "a",
        "role": "assistant",
        "content": "Hi",
        "reasoning": "politely",
        "status": "complete",
        "finish_reason": "stop",
        "usage": {"total_tokens": 3},
        "stats": {"ttft_ms": 1.5},
        "filter_matches": [{"rule": "r"}],
    },
    {"id": "c", "parent_id": "a", "role": "assistant", "content": "Hell", "status": "running"},
)
