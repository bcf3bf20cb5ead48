"""What a frontend leaves behind that is killed without warning."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.frontend.sessions.port import LEASE_SECONDS
from services.frontend.sessions.sql_store import SqlSessionStore
from tests.e2e.service import free_ports
from tests.fakes.scripted_text_service import ScriptedTextService, echo
from tests.frontend.conftest import Starter
from tests.frontend.requests import CHAT
from tests.frontend.sessions.turn_calls import create, kept, said, take_turn, talking, turn

REPOSITORY = Path(__file__).parents[3]


@asynccontextmanager
async def frontend_process(
    service: ScriptedTextService, database_url: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    """A frontend in a process of its own, and a client of it. It is killed at the end, if it is still there."""
    (port,) = free_ports(1)
    settings = {
        "OMNI_FRONTEND_PORT": str(port),
        "OMNI_FRONTEND_TOKENIZERS": f"127.0.0.1:{service.port}",
        "OMNI_FRONTEND_SESSIONS_URL": database_url,
        "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'protos'}",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.frontend", env={**os.environ, **settings}, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            async with asyncio.timeout(30):
                while not await _is_ready(client):
                    assert process.returncode is None
                    await asyncio.sleep(0.05)
            yield process, client
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _is_ready(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health/ready")).status_code == 200
    except httpx.TransportError:
        return False


async def _turns_until_killed(
    process: asyncio.subprocess.Process, client: httpx.AsyncClient, session_id: str, seconds: float
) -> list[dict[str, Any]]:
    """The answers, one after the other, that were told before the kill came, so long after the first."""
    answers = [await take_turn(client, session_id, "number 0")]
    asyncio.get_running_loop().call_later(seconds, process.kill)
    try:
        while True:
            answers.append(await take_turn(client, session_id, f"number {len(answers)}"))
    except httpx.TransportError:
        return answers


async def test_told_is_kept(service: ScriptedTextService, database_url: str) -> None:
    """Every turn whose answer was told is there after kill -9, whole and in order."""
    async with frontend_process(service, database_url) as (process, client):
        session_id = await create(client)
        answers = await _turns_until_killed(process, client, session_id, 0.2)
        await process.wait()
    store = SqlSessionStore(database_url)
    messages = store.tree("", session_id)
    store.close()
    told = [message for number in range(len(answers)) for message in (f"number {number}", f"number {number} ")]
    first = messages[: len(told)]
    assert [message.outcome.content for message in first] == told
    assert {message.outcome.status for message in first} == {"complete"}
    assert [message.id for message in first[1::2]] == [answer["session"]["answer_id"] for answer in answers]
    # Kept, but its end was not told yet; or begun; or neither.
    assert [message.role for message in messages[len(told) :]] in ([], ["user", "assistant"])


async def test_killed_within_an_answer(start: Starter, service: ScriptedTextService, database_url: str) -> None:
    """The question is kept, and as partial what the answer had some seconds before; within as many the session is free
    for the next turn."""
    async with frontend_process(service, database_url) as (process, client):
        session_id = await create(client)
        service.script = talking
        with pytest.raises(httpx.TransportError):
            async with client.stream("POST", CHAT, json=turn(session_id, "one", stream=True)) as response:
                asyncio.get_running_loop().call_later(LEASE_SECONDS / 3 + 1, process.kill)
                async for _ in response.aiter_bytes():
                    pass
        killed_at = asyncio.get_running_loop().time()
    service.script = echo
    client = (await start(sessions_url=database_url)).client
    assert said(await kept(client, session_id))[0] == ("user", "one", "complete")
    while (response := await client.post(CHAT, json=turn(session_id, "two"))).status_code == 409:
        assert asyncio.get_running_loop().time() - killed_at < LEASE_SECONDS + 2
        await asyncio.sleep(0.2)
    assert response.status_code == 200, response.text
    _, answer, *two = await kept(client, session_id)
    assert answer["status"] == "partial"
    assert answer["content"].startswith("word word ")
    assert said(two) == [("user", "two", "complete"), ("assistant", "two ", "complete")]
