"""How turns end other than well, and what is kept of them then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.chassis.errors import Unavailable
from services.frontend.sessions.port import LEASE_SECONDS
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, echo, started
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import CHAT, error_of, events, texts
from tests.frontend.sessions.turn_calls import SESSIONS, create, kept, said, take_turn, talking, turn
from tests.postgresql import running_postgresql


@pytest.fixture
async def frontend(start: Starter, tmp_path: Path) -> Frontend:
    """A frontend that keeps sessions."""
    return await start(state_dir=tmp_path / "state")


@pytest.fixture
def client(frontend: Frontend) -> httpx.AsyncClient:
    """Its client."""
    return frontend.client


@asynccontextmanager
async def streaming(client: httpx.AsyncClient, session_id: str, **fields: Any) -> AsyncIterator[AsyncIterator[str]]:
    """A turn whose answer has begun: the lines of its stream. Leaving is leaving the connection."""
    request = turn(session_id, "one", stream=True, **fields)
    async with client.stream("POST", CHAT, json=request) as response:
        assert response.status_code == 200
        lines = response.aiter_lines()
        async for line in lines:
            if '"word "' in line:
                break
        yield lines


async def until_free(client: httpx.AsyncClient, session_id: str) -> None:
    """Wait until a turn's end is kept, which another frontend learns from the database alone."""
    async with asyncio.timeout(2):
        # Nothing in this process would set an event.
        while (await client.get(f"{SESSIONS}/{session_id}")).json()["busy"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_leaving(
    frontend: Frontend, client: httpx.AsyncClient, service: ScriptedTextService, streamed: bool
) -> None:
    """A caller who leaves ends the turn: the question is kept, and what there was of the answer as partial."""
    session_id = await create(client)
    service.script = talking
    async with httpx.AsyncClient(base_url=frontend.url) as leaving:
        asking = asyncio.create_task(leaving.post(CHAT, json=turn(session_id, "one", stream=streamed), timeout=60))
        await until(lambda: service.live == 1)
        await asyncio.sleep(0.2)
        asking.cancel()
    await until(lambda: service.live == 0, seconds=1)
    question, answer = await kept(client, session_id)
    assert (question["content"], question["status"], answer["status"]) == ("one", "complete", "partial")
    assert answer["content"].startswith("word word ")
    assert answer["usage"]["completion_tokens"] == answer["content"].count("word ")
    assert answer["finish_reason"] is None
    service.script = echo
    await take_turn(client, session_id, continue_message_id=answer["id"])
    assert [each["status"] for each in await kept(client, session_id)] == ["complete", "complete"]


async def test_failure_after_the_first_byte(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A turn whose generation fails is told as failed, and kept as far as it came."""

    async def failing(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        yield text_pb2.Delta(token_ids=[1], text="word ")
        raise Unavailable("the engine was lost")

    session_id = await create(client)
    service.script = failing
    told = events((await client.post(CHAT, json=turn(session_id, "one", stream=True))).text)
    assert "the engine was lost" in told[-1]["error"]["message"]
    assert said(await kept(client, session_id)) == [("user", "one", "complete"), ("assistant", "word ", "partial")]


async def test_two_turns_at_once(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """While a turn is under way a second one gets 409 and leaves no trace, and so do changes of the tree."""
    session_id = await create(client)
    service.script = talking
    async with streaming(client, session_id):
        for response in (
            await client.post(CHAT, json=turn(session_id, "two")),
            await client.delete(f"{SESSIONS}/{session_id}/messages/{(await kept(client, session_id))[0]['id']}"),
        ):
            assert (response.status_code, error_of(response)["code"]) == (409, "session_busy")
            assert response.headers["retry-after"] == "1"
        (_, answer) = await kept(client, session_id)
        assert answer["status"] == "running"
        assert (await client.get(f"{SESSIONS}/{session_id}")).json()["busy"] is True
        assert (await client.patch(f"{SESSIONS}/{session_id}", json={"title": "t"})).json()["title"] == "t"
    service.script = echo
    await until(lambda: service.live == 0)
    await take_turn(client, session_id, "two")


async def test_many_at_once(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """Of turns that are sent at the same time one runs and the others get 409."""
    session_id = await create(client)
    service.script = talking
    asking = [
        asyncio.create_task(client.post(CHAT, json=turn(session_id, f"{number}", max_tokens=1))) for number in range(8)
    ]
    await until(lambda: service.live == 1 and sum(task.done() for task in asking) == 7)
    assert [task.result().status_code for task in asking if task.done()] == [409] * 7
    for task in asking:
        task.cancel()


async def test_two_frontends(start: Starter, service: ScriptedTextService, tmp_path: Path) -> None:
    """Frontends that share a database share its sessions, and keep each other from a turn."""
    one, two = [(await start(state_dir=tmp_path)).client for _ in range(2)]
    session_id = await create(one)
    service.script = talking
    async with streaming(one, session_id):
        response = await two.post(CHAT, json=turn(session_id, "two"))
        assert (response.status_code, error_of(response)["code"]) == (409, "session_busy")
        # The lease is renewed for as long as the turn takes.
        await asyncio.sleep(LEASE_SECONDS + 1)
        assert (await two.get(f"{SESSIONS}/{session_id}")).json()["busy"] is True
        assert "word word " in (await kept(two, session_id))[1]["content"]
    service.script = echo
    await until_free(two, session_id)
    await take_turn(two, session_id, "two")
    assert [message["content"] for message in await kept(one, session_id)][2:] == ["two", "two "]


async def test_deleted_during_a_turn(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A session that is deleted during its turn is gone, and the turn ends with an error, without `[DONE]`."""
    session_id = await create(client)
    service.script = talking
    async with streaming(client, session_id) as lines:
        assert (await client.delete(f"{SESSIONS}/{session_id}")).status_code == 200
        last = [line async for line in lines if line][-1]
        assert '"error"' in last and "deleted" in last
    await until(lambda: service.live == 0, seconds=1)
    assert (await client.get(f"{SESSIONS}/{session_id}")).status_code == 404


async def test_kept_before_it_is_told(start: Starter, service: ScriptedTextService, tmp_path: Path) -> None:
    """Whoever has read the end of an answer finds it kept, even by another process, however often it is tried."""
    client, other = [(await start(state_dir=tmp_path)).client for _ in range(2)]
    session_id = await create(client)
    for number in range(10):
        async with client.stream("POST", CHAT, json=turn(session_id, f"{number}", stream=True)) as response:
            async for line in response.aiter_lines():
                if line == "data: [DONE]":
                    answer = (await kept(other, session_id))[-1]
                    assert (answer["content"], answer["status"]) == (f"{number} ", "complete")


async def test_question_is_kept_before_the_first_byte(
    start: Starter, service: ScriptedTextService, tmp_path: Path
) -> None:
    """When the model hears of a question, it is kept already."""
    client, other = [(await start(state_dir=tmp_path)).client for _ in range(2)]
    session_id = await create(client)
    seen: list[Any] = []

    async def looking(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        seen.extend(said(await kept(other, session_id)))
        async for event in echo(request):
            yield event

    service.script = looking
    await take_turn(client, session_id, "one")
    assert seen == [("user", "one", "complete"), ("assistant", "", "running")]


async def test_database_lost_during_a_turn(start: Starter, service: ScriptedTextService) -> None:
    """When the database fails the turn ends with an error and without `[DONE]`; once it is back the session is usable,
    and what was kept of the answer is partial."""
    with running_postgresql() as server:
        client = (await start(sessions_url=server.create("sessions"))).client
        session_id = await create(client)
        ending = asyncio.Event()

        async def waiting(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
            yield started(request)
            yield text_pb2.Delta(token_ids=[1], text="word ")
            await ending.wait()
            async for event in echo(request):
                if not isinstance(event, text_pb2.Started):
                    yield event

        service.script = waiting
        async with streaming(client, session_id) as lines:
            await asyncio.to_thread(server.stop)
            ending.set()
            rest = [line async for line in lines if line]
        assert "[DONE]" not in rest[-1]
        assert '"code":"sessions_database"' in rest[-1]
        refused = await client.get(f"{SESSIONS}/{session_id}")
        assert (refused.status_code, error_of(refused)["code"]) == (503, "sessions_database")
        assert (await client.post(CHAT, json=turn(session_id, "x"))).status_code == 503
        await asyncio.to_thread(server.start)
        service.script = echo
        begin = time.monotonic()
        while (response := await client.post(CHAT, json=turn(session_id, "two"))).status_code != 200:
            assert response.status_code in (409, 503)
            assert time.monotonic() - begin < LEASE_SECONDS + 5
            await asyncio.sleep(0.5)
        assert [message["status"] for message in await kept(client, session_id)][1] == "partial"


async def test_long_answers_cost_no_order(client: httpx.AsyncClient) -> None:
    """A long streamed answer is kept whole and as it was told."""
    session_id = await create(client)
    text = " ".join(str(number) for number in range(3000))
    response = await client.post(CHAT, json=turn(session_id, text, stream=True))
    told = texts(events(response.text)[:-1])
    assert told.split() == text.split()
    assert (await kept(client, session_id))[1]["content"] == told
