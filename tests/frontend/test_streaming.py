"""A stream's first byte and its silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx

from services.chassis.errors import Overloaded
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Starter
from tests.frontend.requests import CHAT, chat, events, texts


async def test_comments_while_nothing_flows(start: Starter, service: ScriptedTextService) -> None:
    """A quiet stream begins after its time with a comment, has comments in each pause, and loses nothing."""

    async def slow(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        await asyncio.sleep(0.5)
        yield started(request)
        yield text_pb2.Delta(token_ids=[1], text="one ")
        await asyncio.sleep(0.5)
        yield text_pb2.Delta(token_ids=[2], text="two")
        yield finished(2)

    service.script = slow
    frontend = await start(first_byte_s=0.2, comment_interval_s=0.2)
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with frontend.client.stream("POST", CHAT, json=chat(stream=True)) as response:
        assert 0.15 < loop.time() - began < 0.45
        body = (await response.aread()).decode()
    first, second = body.split("one ")
    assert first.startswith(": keep-alive\n\n")
    assert first.count(": keep-alive\n\n") == 2
    assert second.count(": keep-alive\n\n") == 2
    assert texts(events(body)) == "one two"


async def test_no_comments_while_text_flows(start: Starter, service: ScriptedTextService) -> None:
    """A stream that flows has no comments."""

    async def steady(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        for token_id in range(10):
            yield text_pb2.Delta(token_ids=[token_id], text="x")
            await asyncio.sleep(0.05)
        yield finished(10)

    service.script = steady
    frontend = await start(first_byte_s=0.2, comment_interval_s=0.2)
    assert "keep-alive" not in (await frontend.client.post(CHAT, json=chat(stream=True))).text


async def test_a_refusal_before_the_first_byte_time_keeps_its_status(
    start: Starter, service: ScriptedTextService
) -> None:
    """A refusal that comes in time is an error response; one that comes later is an error event."""

    async def refuse(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in list[Event]():
            yield event
        await asyncio.sleep(0.3)
        raise Overloaded("all places are taken")

    service.script = refuse
    patient, hasty = await start(first_byte_s=5), await start(first_byte_s=0.1)
    assert (await patient.client.post(CHAT, json=chat(stream=True))).status_code == 503
    late = await hasty.client.post(CHAT, json=chat(stream=True))
    assert late.status_code == 200
    assert [event["error"]["code"] for event in events(late.text)] == ["overloaded"]


async def test_what_gathers_goes_out_at_once(start: Starter, service: ScriptedTextService) -> None:
    """Text reaches the reader while the generation goes on."""
    proceed = asyncio.Event()

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        yield text_pb2.Delta(token_ids=[1], text="early")
        await proceed.wait()
        yield finished(1)

    service.script = script
    frontend = await start()
    async with frontend.client.stream("POST", CHAT, json=chat(stream=True)) as response:
        seen = ""
        async for piece in response.aiter_text():
            seen += piece
            if "early" in seen:
                proceed.set()
    assert seen.endswith("data: [DONE]\n\n")


async def test_head_of_a_stream_is_never_sent_twice(start: Starter, service: ScriptedTextService) -> None:
    """A connection serves one stream after another."""
    frontend = await start()
    limits = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(base_url=frontend.url, limits=limits) as client:
        for _ in range(3):
            assert texts(events((await client.post(CHAT, json=chat(stream=True))).text)) == "one two three "
