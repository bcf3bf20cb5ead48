"""The API of sessions over HTTP."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.frontend.conftest import Starter
from tests.frontend.requests import error_of
from tests.frontend.sessions.documents import TREE, document

SESSIONS = "/v1/sessions"


async def create(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    """Make a session."""
    response = await client.post(SESSIONS, json=fields)
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return made


async def test_a_session_s_life(client: httpx.AsyncClient) -> None:
    """A session is made, shown, changed, listed and deleted; then it is unknown."""
    made = await create(client, title="Llamas", model="m", system="Be brief.", metadata={"k": "v"}, ttl_seconds=60)
    assert made.pop("id").startswith("sess_")
    now = time.time()
    assert abs(made.pop("created_at") - now) < 10 and abs(made.pop("updated_at") - now) < 10
    assert abs(made.pop("expires_at") - now - 60) < 10
    assert made == {
        "object": "session",
        "title": "Llamas",
        "model": "m",
        "system": "Be brief.",
        "context_policy": None,
        "ttl_seconds": 60,
        "head": None,
        "summary": None,
        "metadata": {"k": "v"},
        "message_count": 0,
        "busy": False,
    }
    (listed,) = (await client.get(SESSIONS)).json()["data"]
    path = f"{SESSIONS}/{listed['id']}"
    assert (await client.get(path)).json() == listed
    changes = {"title": "Alpacas", "system": None, "context_policy": "summarize", "ttl_seconds": None}
    changed = (await client.patch(path, json=changes)).json()
    assert (changed["title"], changed["system"], changed["context_policy"]) == ("Alpacas", None, "summarize")
    assert (changed["model"], changed["metadata"], changed["expires_at"]) == ("m", {"k": "v"}, None)
    deleted = await client.delete(path)
    assert deleted.json() == {"id": listed["id"], "object": "session.deleted", "deleted": True}
    for response in (await client.get(path), await client.delete(path), await client.patch(path, json={})):
        assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")


async def test_pages_and_search(client: httpx.AsyncClient) -> None:
    """Sessions are listed newest first, page by page, and by what their titles and texts hold."""
    made = [await create(client, title=f"number {number}") for number in range(5)]
    first = (await client.get(SESSIONS, params={"limit": 3})).json()
    assert [each["title"] for each in first["data"]] == ["number 4", "number 3", "number 2"]
    assert (first["object"], first["has_more"], first["last_id"]) == ("list", True, made[2]["id"])
    rest = (await client.get(SESSIONS, params={"limit": 3, "after": first["last_id"]})).json()
    assert [each["title"] for each in rest["data"]] == ["number 1", "number 0"]
    assert rest["has_more"] is False
    assert (await client.post(f"{SESSIONS}/import", json=document(*TREE))).status_code == 201
    for query, expected in (("NUMBER 3", ["number 3"]), ("hell", ["Hello"]), ("nothing", [])):
        found = (await client.get(SESSIONS, params={"q": query})).json()
        assert [each["title"] for each in found["data"]] == expected


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", None),
        ("q=" + "x" * 201, "q"),
        ("q=%ff", None),
        ("after=unknown", "after"),
    ],
)
async def test_bad_queries(client: httpx.AsyncClient, query: str, param: str | None) -> None:
    """A query that cannot be meant is refused, by the name of its member."""
    response = await client.get(f"{SESSIONS}?{query}")
    assert response.status_code in (400, 404)
    assert error_of(response)["param"] == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"title": 1}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"system": []}, "system"),
        ({"system": "x" * 65_537}, "system"),
        ({"model": {}}, "model"),
        ({"context_policy": "forget"}, "context_policy"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": 1.5}, "ttl_seconds"),
        ({"metadata": {"k": 1}}, "metadata"),
        ({"metadata": {"k": "v" * 513}}, "metadata"),
        ({"metadata": {f"k{number}": "v" for number in range(17)}}, "metadata"),
        ({"titel": "x"}, None),
    ],
)
async def test_bad_bodies(client: httpx.AsyncClient, body: dict[str, Any], param: str | None) -> None:
    """A member that is wrong, too long or unknown is refused, when a session is made and when it is changed."""
    made = await create(client)
    path = f"{SESSIONS}/{made['id']}"
    for response in (await client.post(SESSIONS, json=body), await client.patch(path, json=body)):
        assert response.status_code == 400
        assert error_of(response)["param"] == param
    assert (await client.get(path)).json() == made


async def test_messages(client: httpx.AsyncClient) -> None:
    """The path to the head is listed, or the whole tree; a message tells its siblings and what became of it."""
    made = (await client.post(f"{SESSIONS}/import", json=document(*TREE, head="b"))).json()
    path = f"{SESSIONS}/{made['id']}"
    tree = (await client.get(f"{path}/messages", params={"all": "true"})).json()["data"]
    assert [each["content"] for each in tree] == ["Hello", "Hi", "Hell"]
    assert tree[2]["status"] == "partial"
    listed = (await client.get(f"{path}/messages")).json()
    assert listed["data"] == tree[:2]
    assert tree[1] == {
        "id": made["head"],
        "object": "session.message",
        "session_id": made["id"],
        "parent_id": tree[0]["id"],
        "role": "assistant",
        "content": "Hi",
        "reasoning": "politely",
        "status": "complete",
        "finish_reason": "stop",
        "created_at": tree[1]["created_at"],
        "model": None,
        "usage": {"total_tokens": 3},
        "stats": {"ttft_ms": 1.5},
        "context": None,
        "filter_matches": [{"rule": "r"}],
        "siblings": [tree[1]["id"], tree[2]["id"]],
    }
    chosen = await client.patch(path, json={"head": tree[2]["id"]})
    assert chosen.json()["head"] == tree[2]["id"]
    assert (await client.get(f"{path}/messages")).json()["data"] == [tree[0], tree[2]]
    nowhere = await client.patch(path, json={"head": None})
    assert (nowhere.status_code, error_of(nowhere)["param"]) == (400, "head")
    gone = await client.delete(f"{path}/messages/{tree[2]['id']}")
    assert gone.json() == {"id": tree[2]["id"], "object": "session.message.deleted", "deleted": True}
    assert (await client.get(path)).json()["head"] == tree[0]["id"]
    for response in (
        await client.delete(f"{path}/messages/{tree[2]['id']}"),
        await client.patch(path, json={"head": tree[2]["id"]}),
    ):
        assert (response.status_code, error_of(response)["code"]) == (404, "message_not_found")


async def test_keys_are_owners(start: Starter, tmp_path: Path) -> None:
    """A session is there for the key that made it alone."""
    keys = tmp_path / "keys"
    keys.write_text("key-one\nkey-two\n")
    client = (await start(state_dir=tmp_path, api_keys_file=keys)).client
    one, two = ({"Authorization": f"Bearer key-{name}"} for name in ("one", "two"))
    made = (await client.post(SESSIONS, json={"title": "mine"}, headers=one)).json()
    path = f"{SESSIONS}/{made['id']}"
    assert (await client.get(path, headers=one)).json() == made
    for method, where in (("GET", path), ("PATCH", path), ("DELETE", path), ("GET", f"{path}/messages")):
        response = await client.request(method, where, headers=two, json={} if method == "PATCH" else None)
        assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    assert (await client.get(SESSIONS, headers=two)).json()["data"] == []
    assert (await client.get(SESSIONS)).status_code == 401


async def test_no_sessions(start: Starter) -> None:
    """A frontend without a database says that it keeps no sessions, and how it would."""
    client = (await start()).client
    response = await client.post(SESSIONS, json={})
    assert (response.status_code, error_of(response)["code"]) == (404, "sessions_disabled")
    assert "OMNI_FRONTEND_STATE_DIR" in response.text


async def test_methods(client: httpx.AsyncClient) -> None:
    """A method that a path does not have is refused with those that it has."""
    response = await client.put(f"{SESSIONS}/x", json={})
    assert (response.status_code, response.headers["allow"]) == (405, "DELETE, GET, PATCH")


async def test_kept_privately(start: Starter, tmp_path: Path) -> None:
    """The sessions' files are for the service's user alone, and outlive it."""
    state = tmp_path / "state"
    made = await create((await start(state_dir=state)).client, title="kept")
    assert state.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in state.iterdir()} == {0o600}
    again = (await start(state_dir=state)).client
    assert (await again.get(f"{SESSIONS}/{made['id']}")).json()["title"] == "kept"
