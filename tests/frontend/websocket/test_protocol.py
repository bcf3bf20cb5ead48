"""Bounds of a WebSocket's messages."""

from __future__ import annotations

import asyncio
import struct

import orjson
import pytest
import structlog

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import chat, texts
from tests.frontend.steps import Steps
from tests.frontend.websocket.bare import CLOSE, CONT, FIN, PING, PONG, TEXT, bare, frame, pour
from tests.frontend.websocket.sockets import chunks, open_socket


async def test_large_messages(start: Starter) -> None:
    """A message beyond the limit closes the socket with 1009, whether it comes whole, in pieces, or only says its size;
    one within the limit is served."""
    frontend = await start(body_limit_bytes=100_000)
    big = [
        [frame(FIN | TEXT, b"x" * 200_000)],
        [frame(FIN | TEXT, size=2**40)],
        [frame(TEXT, b"x" * 60_000), frame(FIN | CONT, b"x" * 60_000)],
    ]
    for pieces in big:
        socket = await bare(frontend)
        await pour(socket, pieces)
        assert await socket.closed_with() == 1009
        socket.writer.close()
    async with open_socket(frontend) as within:
        await within.start("a", "w" * 90_000)
        assert texts(chunks(await within.until("done"))) == "w" * 90_000 + " "


async def test_messages_in_endless_pieces(start: Starter) -> None:
    """A message of more pieces than its limit can hold closes the socket, though they have no bytes."""
    frontend = await start(body_limit_bytes=100_000)
    socket = await bare(frontend)
    await pour(socket, [frame(TEXT), *(frame(CONT) * 100 for _ in range(100))])
    assert await socket.closed_with() == 1009
    socket.writer.close()


async def test_messages_in_pieces(frontend: Frontend) -> None:
    """A message may come in pieces, with pings between them, and byte by byte."""
    socket = await bare(frontend)
    text = '{"type":"ping","é":1}'.encode()
    pieces = [frame(TEXT, text[:17]), frame(FIN | PING, b"hi"), frame(CONT), frame(FIN | CONT, text[17:])]
    for byte in b"".join(pieces):
        socket.writer.write(bytes([byte]))
        await asyncio.sleep(0)
    assert await socket.next() == (FIN | PONG, b"hi")
    assert await socket.next() == (FIN | TEXT, b'{"type":"pong"}')
    socket.writer.close()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(FIN | TEXT, b"\xff\xfe"), 1007),
        (frame(TEXT, b"\xf0\x9f") + frame(FIN | CONT, b"\x98"), 1007),
        (b"\x81\x02hi", 1002),
        (frame(FIN | CONT, b"x"), 1002),
        (frame(TEXT, b"x") + frame(FIN | TEXT, b"x"), 1002),
        (frame(FIN | 0x3), 1002),
        (frame(FIN | 0x40 | TEXT, b"x"), 1002),
        (frame(FIN | PING, b"x" * 126), 1002),
        (frame(FIN | CLOSE, b"\x00"), 1002),
        (frame(FIN | CLOSE, struct.pack("!H", 1000)), 1000),
    ],
    ids=[
        "bytes",
        "cut character",
        "no mask",
        "no start",
        "two starts",
        "opcode",
        "bits",
        "long ping",
        "close",
        "leaving",
    ],
)
async def test_broken_frames(frontend: Frontend, sent: bytes, code: int) -> None:
    """What breaks the protocol closes the socket with the code for that, no traceback is logged, and others go on."""
    with structlog.testing.capture_logs() as lines:
        socket = await bare(frontend)
        socket.writer.write(sent)
        assert await socket.closed_with() == code
        async with asyncio.timeout(5):
            assert await socket.reader.read() == b""
        socket.writer.close()
        async with open_socket(frontend) as other:
            await other.start("a", "one")
            assert texts(chunks(await other.until("done"))) == "one "
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []


@pytest.mark.parametrize(
    "begun", [frame(TEXT, b"{"), frame(FIN | TEXT, b"{", size=50)], ids=["between pieces", "within a piece"]
)
async def test_messages_that_pause(start: Starter, begun: bytes) -> None:
    """A message that does not go on closes the socket with 1008; a socket on which nothing is said stays open."""
    frontend = await start(body_timeout_s=0.3)
    quiet, pausing = await bare(frontend), await bare(frontend)
    pausing.writer.write(begun)
    assert await pausing.closed_with() == 1008
    quiet.writer.write(frame(FIN | TEXT, b'{"type":"ping"}'))
    assert await quiet.next() == (FIN | TEXT, b'{"type":"pong"}')
    for socket in (quiet, pausing):
        socket.writer.close()


async def test_memory_for_messages(start: Starter) -> None:
    """Messages of all sockets share the memory for bodies: beyond it a socket is closed with 1013, and what it held is
    free again."""
    frontend = await start(body_limit_bytes=1_000_000, body_budget_bytes=1_500_000)
    first, second = await bare(frontend), await bare(frontend)
    for socket in (first, second):
        socket.writer.write(frame(TEXT, b"x" * 900_000))
        await socket.writer.drain()
        await asyncio.sleep(0.2)
    assert await second.closed_with() == 1013
    for socket in (first, second):
        socket.writer.close()
    await asyncio.sleep(0.1)
    third, fourth = await bare(frontend), await bare(frontend)
    for socket in (third, fourth):
        socket.writer.write(frame(TEXT, b"x" * 700_000))
        await socket.writer.drain()
    await asyncio.sleep(0.2)
    for socket in (third, fourth):
        socket.writer.write(frame(FIN | PING))
        assert await socket.next() == (FIN | PONG, b"")
        socket.writer.close()


async def test_broken_frames_while_text_flows(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """A socket that breaks the protocol while it is written to ends what runs on it, without a fault in the log."""
    socket = await bare(frontend)
    body = {"type": "start", "id": "a", "endpoint": "chat.completions", "body": chat()}
    with structlog.testing.capture_logs() as lines:
        socket.writer.write(frame(FIN | TEXT, orjson.dumps(body)))
        await until(lambda: service.live == 1)
        socket.writer.write(frame(FIN | CONT))
        for _ in range(20):
            steps.say(100)
            await asyncio.sleep(0)
        assert await socket.closed_with() == 1002
        await until(lambda: service.live == 0, seconds=1)
    socket.writer.close()
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []
