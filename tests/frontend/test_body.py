"""Bounds on the body: type, size, time, memory; and that a large one disturbs nobody."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import time
from collections.abc import AsyncGenerator, Callable

import orjson
import pytest

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Frontend, Starter
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of

BODY = orjson.dumps(chat())
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 400),
        ({"content-type": "text/plain"}, 400),
        ({"content-type": "application/x-www-form-urlencoded"}, 400),
        ({"content-type": "application/json; charset=latin-1"}, 400),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": "Application/JSON"}, 200),
    ],
)
async def test_content_type(frontend: Frontend, headers: dict[str, str], status: int) -> None:
    """Only JSON in UTF-8 is read."""
    response = await frontend.client.post(CHAT, content=BODY, headers=headers)
    assert response.status_code == status


async def test_compressed_bodies_are_refused(frontend: Frontend) -> None:
    """A gzip bomb is not unpacked: 415."""
    bomb = gzip.compress(b" " * 10_000_000)
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    response = await frontend.client.post(CHAT, content=bomb, headers=headers)
    assert response.status_code == 415
    assert error_of(response)["code"] == "unsupported_media_type"


async def test_too_large_by_its_length(frontend: Frontend) -> None:
    """27 MB get 413 with the limit, without being parsed, and the connection can be used again."""
    response = await frontend.client.post(CHAT, content=b"x" * 27_000_000, headers={"content-type": "application/json"})
    assert response.status_code == 413
    error = error_of(response)
    assert (error["type"], error["code"]) == ("invalid_request_error", "too_large")
    assert str(20 * 1024 * 1024) in error["message"]
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_too_large_on_a_connection_that_ends(frontend: Frontend) -> None:
    """A caller that wants the connection closed and sends all 27 MB before it reads gets the 413, not a reset."""
    reader, writer = await frontend.connect()
    head = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n"
    writer.write(head + b"content-length: %d\r\n\r\n" % 27_000_000)
    for _ in range(27):
        writer.write(b"x" * 1_000_000)
        await writer.drain()
    async with asyncio.timeout(5):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 413 ") and b"connection: close" in answer


async def test_too_large_without_a_length(start: Starter) -> None:
    """A chunked body that exceeds the limit gets 413 too."""
    frontend = await start(body_limit_bytes=100_000)

    async def chunks() -> object:
        for _ in range(300):
            yield b"x" * 1000

    response = await frontend.client.post(CHAT, content=chunks(), headers={"content-type": "application/json"})  # type: ignore[arg-type]
    assert response.status_code == 413
    error_of(response)


async def test_too_many_values(frontend: Frontend) -> None:
    """A body of millions of tiny values, which would take gigabytes when parsed, gets 413."""
    for body in (b'{"x": [' + b"[]," * 200_000 + b"0]}", b'{"x": [' + b"1," * 2_500_000 + b"0]}"):
        response = await frontend.client.post(CHAT, content=body, headers={"content-type": "application/json"})
        assert response.status_code == 413
        error_of(response)


async def test_memory_for_bodies_is_bounded(start: Starter) -> None:
    """What does not fit beside other bodies gets 503, and fits once they are gone."""
    frontend = await start(body_budget_bytes=100_000)
    _, writer = await frontend.connect()
    writer.write(HEAD + b"content-length: 99000\r\n\r\n" + b" " * 98_000)
    await writer.drain()
    await asyncio.sleep(0.2)
    response = await frontend.client.post(CHAT, json=chat("x" * 5000))
    assert response.status_code == 503
    assert error_of(response)["code"] == "overloaded"
    writer.close()
    await asyncio.sleep(0.2)
    assert (await frontend.client.post(CHAT, json=chat("x" * 5000))).status_code == 200


async def test_a_body_that_pauses(start: Starter) -> None:
    """A body that stops in its midst gets 408 instead of holding its place."""
    frontend = await start(body_timeout_s=0.2)
    reader, writer = await frontend.connect()
    writer.write(HEAD + b"content-length: 99\r\n\r\n{")
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"x-should-retry: false" in head
    writer.close()


async def test_expect_continue_is_refused_before_the_body(frontend: Frontend) -> None:
    """A caller that asks before it sends 27 MB is refused before it sends them."""
    reader, writer = await frontend.connect()
    writer.write(HEAD + b"expect: 100-continue\r\ncontent-length: 27000000\r\n\r\n")
    async with asyncio.timeout(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()


async def terse(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say one word, whatever is asked."""
    yield started(request)
    yield text_pb2.Delta(token_ids=[1], text="word")
    yield finished(1)


LARGE_BODIES = {
    "text": lambda: (CHAT, chat("word\n" * 3_100_000)),
    "token ids": lambda: (COMPLETIONS, completion([7] * 1_900_000)),
    "objects": lambda: (CHAT, chat("x") | {"metadata": {"list": [{"a": 1}] * 90_000}}),
}


@pytest.mark.parametrize("large", LARGE_BODIES.values(), ids=LARGE_BODIES)
async def test_health_answers_while_a_large_body_arrives(
    start: Starter, service: ScriptedTextService, large: Callable[[], tuple[str, object]]
) -> None:
    """While a body of up to 19 MB is read, parsed and passed on, health answers within 100 ms."""
    service.script = terse
    frontend = await start()
    path, request = large()
    body = orjson.dumps(request)
    # A neighbour on the machine only ever adds to the time: the best of some rounds is the frontend's own.
    slowest = [await _slowest_health(frontend, path, body) for _ in range(4)]
    assert min(slowest) < 0.1


async def _slowest_health(frontend: Frontend, path: str, body: bytes) -> float:
    """Post a body and return the longest time, in seconds, that health took to answer meanwhile."""
    slowest = 0.0

    async def probe() -> None:
        nonlocal slowest
        while True:
            began = time.perf_counter()
            assert (await frontend.client.get("/health/live")).status_code == 200
            slowest = max(slowest, time.perf_counter() - began)
            await asyncio.sleep(0.005)

    probing = asyncio.create_task(probe())
    try:
        # A thread sends, so that sending is not taken for the frontend's work.
        await asyncio.to_thread(_post, frontend.port, path, body)
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
    assert slowest > 0
    return slowest


def _post(port: int, path: str, body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", path, body, {"content-type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()
