"""Turns over the ways of asking other than a plain request, and at the service's end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.fakes.scripted_text_service import ScriptedTextService, echo
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import CHAT, texts
from tests.frontend.sessions.turn_calls import SESSIONS, create, kept, said, take_turn, talking, turn
from tests.frontend.websocket.sockets import chunks, open_socket
from tests.frontend.websocket.sockets import start as start_message


@pytest.fixture
async def frontend(start: Starter, tmp_path: Path) -> Frontend:
    """A frontend that keeps sessions."""
    return await start(state_dir=tmp_path / "state")


async def test_websocket(frontend: Frontend, service: ScriptedTextService) -> None:
    """A turn over a WebSocket is kept as any other; a refused one is told, and leaves the socket and the session be."""
    session_id = await create(frontend.client)
    async with open_socket(frontend) as socket:
        await socket.send(start_message("a", turn(session_id, "one")))
        got = chunks(await socket.until("done"))
        assert texts(got) == "one "
        await socket.send(start_message("b", turn("sess_unknown", "x")))
        assert (await socket.until("error"))[-1]["error"]["code"] == "session_not_found"
        service.script = talking
        await socket.send(start_message("c", turn(session_id, "two")))
        await socket.until("event")
        await socket.send(start_message("d", turn(session_id, "three")))
        refused = [message for message in await socket.until("error") if message["type"] == "error"]
        assert (refused[0]["id"], refused[0]["error"]["code"]) == ("d", "session_busy")
        await socket.send({"type": "cancel", "id": "c"})
        await socket.until("cancelled")
    messages = await kept(frontend.client, session_id)
    assert got[0]["session"]["answer_id"] == messages[1]["id"]
    assert said(messages)[:2] == [("user", "one", "complete"), ("assistant", "one ", "complete")]
    assert [message["status"] for message in messages[2:]] == ["complete", "partial"]


async def test_lost_websocket(frontend: Frontend, service: ScriptedTextService) -> None:
    """The turns of a socket that is lost are kept as partial, and free their sessions."""
    session_ids = [await create(frontend.client) for _ in range(3)]
    service.script = talking
    async with open_socket(frontend) as socket:
        for session_id in session_ids:
            await socket.send(start_message(session_id, turn(session_id, "one")))
        await until(lambda: service.live == 3)
    await until(lambda: service.live == 0)
    service.script = echo
    for session_id in session_ids:
        await take_turn(frontend.client, session_id, "two")
        states = [message["status"] for message in await kept(frontend.client, session_id)]
        assert states == ["complete", "partial", "complete", "complete"]


async def test_cancelled_by_its_stream_s_id(frontend: Frontend, service: ScriptedTextService) -> None:
    """A resumable turn goes on without its reader, and is kept as partial when it is cancelled."""
    client = frontend.client
    session_id = await create(client)
    service.script = talking
    options = {"resumable": True}
    request = turn(session_id, "one", stream=True, stream_options=options)
    async with client.stream("POST", CHAT, json=request) as response:
        stream_id = response.headers["x-stream-id"]
    await asyncio.sleep(0.1)
    assert (await client.get(f"{SESSIONS}/{session_id}")).json()["busy"] is True
    assert (await client.post(f"/v1/streams/{stream_id}/cancel")).json()["cancelled"] is True
    # At once: what was cancelled is kept before anything else is asked of the session.
    service.script = echo
    await take_turn(client, session_id, "two")
    states = [message["status"] for message in await kept(client, session_id)]
    assert states == ["complete", "partial", "complete", "complete"]


@pytest.mark.parametrize("resumable", [False, True])
async def test_the_service_s_end(start: Starter, service: ScriptedTextService, tmp_path: Path, resumable: bool) -> None:
    """A service that ends within a turn keeps what there is of the answer, and frees the session at once."""
    frontend = await start(state_dir=tmp_path)
    session_id = await create(frontend.client)
    service.script = talking
    options: dict[str, Any] = {"stream_options": {"resumable": True}} if resumable else {}
    request = turn(session_id, "one", stream=True, **options)
    async with frontend.client.stream("POST", CHAT, json=request) as response:
        lines = response.aiter_lines()
        async for line in lines:
            if '"word "' in line:
                break
        frontend.stopping.set()
        assert '"code":"draining"' in [line async for line in lines if line][-1]
    await frontend.task
    service.script = echo
    client = (await start(state_dir=tmp_path)).client
    assert (await client.get(f"{SESSIONS}/{session_id}")).json()["busy"] is False
    (question, answer) = await kept(client, session_id)
    assert (question["content"], answer["status"]) == ("one", "partial")
    assert answer["content"].startswith("word ")


async def test_openai_s_client(frontend: Frontend) -> None:
    """The official client takes turns with the fields in `extra_body`, and shows what was kept where."""
    session_id = await create(frontend.client)
    async with AsyncOpenAI(base_url=f"{frontend.url}/v1", api_key="none") as client:
        messages: Any = [{"role": "user", "content": "one"}]
        for _ in range(2):
            answer = await client.chat.completions.create(
                model="scripted", messages=messages, extra_body={"session_id": session_id}
            )
    stored = await kept(frontend.client, session_id)
    assert len(stored) == 4
    assert answer.model_extra is not None
    assert answer.model_extra["session"]["answer_id"] == stored[3]["id"]
