"""Leaving is cancelling: in each phase the text service hears of it within a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx
import orjson
import pytest

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, echo, started
from tests.frontend.conftest import Frontend, until
from tests.frontend.requests import CHAT, chat


async def silent(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Nothing: the request waits in a queue, or its prompt is being processed."""
    await asyncio.Event().wait()
    yield started(request)


async def talking(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """A word each 10 ms, for ever."""
    yield started(request)
    while True:
        yield text_pb2.Delta(token_ids=[1], text="word ")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("script", [silent, talking])
async def test_disconnect_cancels(
    frontend: Frontend, service: ScriptedTextService, script: object, streamed: bool
) -> None:
    """A caller that closes its connection, before the first token or later, ends the generation."""
    service.script = script  # type: ignore[assignment]
    async with httpx.AsyncClient(base_url=frontend.url) as client:
        asking = asyncio.create_task(
            client.post(CHAT, json=chat(stream=streamed), headers={"x-request-id": "left"}, timeout=60)
        )
        await until(lambda: service.live == 1)
        await asyncio.sleep(0.1)
        asking.cancel()
    await until(lambda: service.cancelled == ["left"], seconds=1)
    assert service.live == 0
    service.script = echo
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 200
    assert "streamomni:http_requests_cancelled_total" in (await frontend.client.get("/metrics")).text


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
async def test_half_close_cancels(frontend: Frontend, service: ScriptedTextService, streamed: bool) -> None:
    """A bare connection that is closed at once after its request ends the generation."""
    service.script = silent
    _, writer = await frontend.connect()
    writer.write(_raw(orjson.dumps(chat(stream=streamed))))
    await until(lambda: service.live == 1)
    writer.close()
    await until(lambda: service.live == 0, seconds=1)


async def test_a_second_request_on_the_connection_hides_no_disconnect(
    frontend: Frontend, service: ScriptedTextService
) -> None:
    """A caller that sends two requests at once and leaves is noticed; only the first was served."""
    service.script = silent
    for pause in (0.0, 0.1):
        started_before = len(service.requests)
        _, writer = await frontend.connect()
        request = _raw(orjson.dumps(chat()))
        writer.write(request)
        await asyncio.sleep(pause)
        writer.write(request)
        await until(lambda: service.live == 1)
        await asyncio.sleep(0.1)
        writer.close()
        await until(lambda: service.live == 0, seconds=1)
        assert len(service.requests) == started_before + 1


async def test_disconnect_while_the_body_arrives(frontend: Frontend, service: ScriptedTextService) -> None:
    """A caller that leaves in the midst of its body starts nothing and leaves nothing behind."""
    _, writer = await frontend.connect()
    writer.write(_raw(orjson.dumps(chat()))[:-5])
    await asyncio.sleep(0.1)
    writer.close()
    await asyncio.sleep(0.1)
    assert service.requests == []
    metrics = (await frontend.client.get("/metrics")).text
    assert 'streamomni:http_requests_total{route="/v1/chat/completions",status="499"} 1.0' in metrics


async def test_two_requests_of_one_id(frontend: Frontend, service: ScriptedTextService) -> None:
    """Two live requests with the same x-request-id are both served."""
    responses = await asyncio.gather(
        *(frontend.client.post(CHAT, json=chat(word), headers={"x-request-id": "same"}) for word in ("a", "b"))
    )
    assert [response.json()["choices"][0]["message"]["content"] for response in responses] == ["a ", "b "]


def _raw(body: bytes) -> bytes:
    head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body
