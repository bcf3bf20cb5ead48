"""Bounds of a connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import orjson
import pytest

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, started
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import CHAT, chat


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Read a response that has a length."""
    async with asyncio.timeout(10):
        status_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return int(status_line.split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


async def exchange(frontend: Frontend, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes and read the answer."""
    reader, writer = await frontend.connect()
    writer.write(request)
    response = await answer(reader)
    writer.close()
    return response


async def test_large_headers(frontend: Frontend) -> None:
    """5 MB of headers get 431 with an error object, and the connection is closed."""
    reader, writer = await frontend.connect()
    writer.write(b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-filler: " + b"a" * 5_000_000)
    status, headers, body = await answer(reader)
    assert status == 431
    assert headers["connection"] == "close"
    assert json.loads(body)["error"]["code"] == "headers_too_large"
    async with asyncio.timeout(5):
        assert await reader.read() == b""


async def test_headers_beyond_the_limit_in_one_piece(start: Starter) -> None:
    """Headers that arrive whole are measured too; those within the limit are served."""
    frontend = await start(header_limit_bytes=2000)
    for size, expected in ((1000, 200), (3000, 431)):
        request = b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-filler: " + b"a" * size + b"\r\n\r\n"
        assert (await exchange(frontend, request))[0] == expected


async def test_slow_headers(start: Starter) -> None:
    """Headers that are not whole in time get 408, and the connection is closed."""
    frontend = await start(header_timeout_s=0.2)
    reader, writer = await frontend.connect()
    writer.write(b"GET /health/live HTTP/1.1\r\nhost: ")
    status, _, body = await answer(reader)
    assert status == 408
    assert json.loads(body)["error"]["code"] == "request_timeout"
    async with asyncio.timeout(5):
        assert await reader.read() == b""


async def test_headers_in_drops(start: Starter) -> None:
    """Bytes that come one by one do not extend the time for headers."""
    frontend = await start(header_timeout_s=0.3)
    reader, writer = await frontend.connect()

    async def drip() -> None:
        for byte in b"GET /health/live HTTP/1.1\r\nx: " + b"a" * 1000:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    assert (await answer(reader))[0] == 408
    dripping.cancel()


async def test_a_connection_without_a_request(start: Starter) -> None:
    """A connection on which nothing comes is closed without a word."""
    frontend = await start(header_timeout_s=0.2)
    reader, _ = await frontend.connect()
    async with asyncio.timeout(5):
        assert await reader.read() == b""


async def test_time_for_headers_counts_for_each_request(start: Starter) -> None:
    """On a connection that is used again, each request has its own time, and an answer may take longer."""
    frontend = await start(header_timeout_s=0.2)
    reader, writer = await frontend.connect()
    for _ in range(3):
        writer.write(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await answer(reader))[0] == 200
        await asyncio.sleep(0.3)
    writer.write(b"GET /health/live HTTP/1.1\r\n")
    assert (await answer(reader))[0] == 408


async def test_an_answer_may_take_longer_than_headers(start: Starter, service: ScriptedTextService) -> None:
    """The time for headers does not end a request that is being answered."""

    async def slow(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        await asyncio.sleep(0.6)
        raise AssertionError("unreached")

    service.script = slow
    frontend = await start(header_timeout_s=0.2, request_timeout_s=0.5)
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 504


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
async def test_what_is_not_http(frontend: Frontend, request_bytes: bytes) -> None:
    """Bytes that are not HTTP get 400 with an error object, and the service goes on."""
    status, headers, body = await exchange(frontend, request_bytes)
    assert status in (400, 404)
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
    assert headers["x-request-id"]
    assert (await frontend.client.get("/health/live")).status_code == 200


async def test_an_upgrade_is_passed_over(frontend: Frontend) -> None:
    """A request that offers another protocol is answered in this one, and the connection ends."""
    upgrade = b"connection: upgrade\r\nupgrade: h2c\r\n"
    status, headers, _ = await exchange(frontend, b"GET /health/live HTTP/1.1\r\nhost: x\r\n" + upgrade + b"\r\n")
    assert (status, headers["connection"]) == (200, "close")


async def test_an_upgrade_with_a_body_is_refused(frontend: Frontend) -> None:
    """A body that the parser would take for the other protocol is not passed over in silence."""
    body = orjson.dumps(chat())
    head = (
        f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    status, headers, answered = await exchange(frontend, head.encode() + body)
    assert (status, headers["connection"]) == (400, "close")
    assert "without upgrade" in json.loads(answered)["error"]["message"]


async def test_a_rest_that_never_comes(start: Starter) -> None:
    """A caller that was refused before the end of its body cannot hold the connection open."""
    frontend = await start(header_timeout_s=0.3)
    reader, writer = await frontend.connect()
    writer.write(b"POST /v1/models HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nbegin")
    assert (await answer(reader))[0] == 405
    async with asyncio.timeout(5):
        assert await reader.read() == b""


async def test_a_reader_that_takes_nothing(start: Starter, service: ScriptedTextService) -> None:
    """A reader that takes nothing has its generation cancelled at once and its connection closed in time."""
    said = 0

    async def flood(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        nonlocal said
        yield started(request)
        while True:
            said += 50_000
            yield text_pb2.Delta(token_ids=[1], text="x" * 50_000)
            await asyncio.sleep(0)

    service.script = flood
    frontend = await start(write_timeout_s=1)
    reader, writer = await frontend.connect()
    body = orjson.dumps(chat(stream=True))
    head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    # The reader's own buffer takes 128 kB and then reads no more.
    await until(lambda: service.live == 1)
    await until(lambda: service.live == 0)
    assert len(service.cancelled) == 1
    # What the kernel took for the connection, and our 256 KiB.
    assert said < 20_000_000
    await asyncio.sleep(1.5)
    assert "streamomni:http_active_streams 0.0" in (await frontend.client.get("/metrics")).text
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        while True:
            await reader.readexactly(1_000_000)


async def test_a_slow_reader_harms_itself_only(frontend: Frontend, service: ScriptedTextService) -> None:
    """While one reader takes nothing, others are served in full."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        while True:
            yield text_pb2.Delta(token_ids=[1], text="x" * 50_000)
            await asyncio.sleep(0)

    ordinary = service.script
    service.script = script
    _, writer = await frontend.connect()
    body = orjson.dumps(chat(stream=True))
    head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await until(lambda: service.live == 1)
    service.script = ordinary
    for _ in range(20):
        assert (await frontend.client.post(CHAT, json=chat())).status_code == 200
    await until(lambda: service.live == 0)
    writer.close()
