"""Sessions that are exported and imported."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from services.frontend.sessions.session import (
    MAX_SESSION_BYTES,
    MAX_SESSION_MESSAGES,
    MAX_SIBLINGS,
    MAX_SUMMARY_CHARS,
)
from tests.frontend.requests import error_of
from tests.frontend.sessions.documents import TREE, document

SESSIONS = "/v1/sessions"
CALL = {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


async def test_export_and_import(client: httpx.AsyncClient) -> None:
    """What is exported and imported again is the same session under other ids, with its tree, head and numbers."""
    first = (await client.post(f"{SESSIONS}/import", json=document(*TREE, head="b", system="s"))).json()
    out = (await client.get(f"{SESSIONS}/{first['id']}/export")).json()
    second = (await client.post(f"{SESSIONS}/import", json=json.loads(json.dumps(out)))).json()
    assert first["id"] != second["id"]
    again = (await client.get(f"{SESSIONS}/{second['id']}/export")).json()
    told = json.dumps(out)
    for before, after in zip(out["messages"], again["messages"], strict=True):
        told = told.replace(before["id"], after["id"])
    told = told.replace(first["id"], second["id"])
    expected = json.loads(told)
    for name in ("created_at", "updated_at"):
        expected["session"][name] = again["session"][name]
    assert again == expected


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"version": 2}, "object"),
        ({"session": None}, "session"),
        ({"messages": {}}, "messages"),
        ({"messages": [TREE[0], TREE[0]]}, "messages[1].id"),
        ({"messages": [TREE[1]]}, "messages[0].parent_id"),
        ({"messages": [{**TREE[0], "role": "robot"}]}, "messages[0].role"),
        ({"messages": [{**TREE[0], "content": 1}]}, "messages[0].content"),
        ({"messages": [{**TREE[0], "usage": 1}]}, "messages[0].usage"),
        ({"messages": [{**TREE[0], "role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"session": {"head": "z"}}, "session.head"),
        ({"session": {"title": 1}}, "session.title"),
        (
            {"session": {"summary": "s" * (MAX_SUMMARY_CHARS + 1), "summary_upto": "a"}, "messages": [TREE[0]]},
            "session.summary",
        ),
        ({"messages": [{**TREE[0], "role": "system"}]}, "messages[0].role"),
        ({"messages": [{**TREE[0], "finish_reason": "\0"}]}, "messages[0].finish_reason"),
        ({"messages": [{**TREE[0], "tool_calls": [CALL]}]}, "messages[0].tool_calls"),
        ({"messages": [{**TREE[0], "id": f"m{number}"} for number in range(MAX_SESSION_MESSAGES + 1)]}, "messages"),
    ],
)
async def test_bad_documents(client: httpx.AsyncClient, changes: dict[str, Any], param: str) -> None:
    """A document with something wrong in it is refused by the place of that, and nothing is kept."""
    response = await client.post(f"{SESSIONS}/import", json={**document(), **changes})
    assert response.status_code == 400, response.text
    assert error_of(response)["param"] == param
    assert (await client.get(SESSIONS)).json()["data"] == []


@pytest.mark.parametrize(
    "heavy", [{"model": "m" * MAX_SESSION_BYTES}, {"usage": {"x": "m" * MAX_SESSION_BYTES}}], ids=["model", "usage"]
)
async def test_heavy_document(client: httpx.AsyncClient, heavy: dict[str, Any]) -> None:
    """All members of a message count towards a session's bound."""
    response = await client.post(f"{SESSIONS}/import", json=document({**TREE[0], **heavy}))
    assert (response.status_code, error_of(response)["param"]) == (413, "messages[0]")


async def test_wide_document(client: httpx.AsyncClient) -> None:
    """A document with too many messages after one is refused: each of them would tell the ids of all."""
    roots = [{**TREE[0], "id": f"m{number}"} for number in range(MAX_SIBLINGS + 1)]
    response = await client.post(f"{SESSIONS}/import", json=document(*roots))
    assert (response.status_code, error_of(response)["param"]) == (413, f"messages[{MAX_SIBLINGS}]")
    assert (await client.post(f"{SESSIONS}/import", json=document(*roots[:-1]))).status_code == 201


async def test_document_that_cannot_be_sent(client: httpx.AsyncClient) -> None:
    """A turn after an imported message that no model can be given is refused, and the error says that it is the
    session's."""
    tool = {"id": "a", "role": "tool", "content": "42", "tool_call_id": "nobody's"}
    made = (await client.post(f"{SESSIONS}/import", json=document(tool, head="a", model="scripted"))).json()
    body = {"session_id": made["id"], "messages": [{"role": "user", "content": "and now?"}]}
    response = await client.post("/v1/chat/completions", json=body)
    assert (response.status_code, error_of(response)["param"]) == (400, "session_id")
    assert "that the session holds" in error_of(response)["message"]
