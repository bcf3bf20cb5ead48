"""Bounds of a WebSocket's messages and of its peer's patience."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from typing import cast

import pytest
import structlog

from tests.frontend.conftest import Frontend, Starter
from tests.frontend.requests import texts
from tests.frontend.websocket.sockets import chunks, open_socket
from tests.frontend.websocket.test_handshake import VALID

FIN, TEXT, CONT, PING, PONG, CLOSE = 0x80, 0x1, 0x0, 0x9, 0xA, 0x8


def frame(opcode: int, payload: bytes = b"", *, size: int | None = None) -> bytes:
    """A client's frame, masked with zeros; `size` is told instead of the payload's."""
    size = len(payload) if size is None else size
    if size < 126:
        head = struct.pack("!BB", opcode, FIN | size)
    elif size < 65536:
        head = struct.pack("!BBH", opcode, FIN | 126, size)
    else:
        head = struct.pack("!BBQ", opcode, FIN | 127, size)
    return head + b"\x00" * 4 + payload


class Bare:
    """A WebSocket as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def next(self) -> tuple[int, bytes]:
        """Opcode and payload of the next frame."""
        async with asyncio.timeout(10):
            first, second = await self.reader.readexactly(2)
            size = second
            if size >= 126:
                size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8))
            return first, await self.reader.readexactly(size)

    async def closed_with(self) -> int:
        """The code of the frame that closes it; pings before it are passed over."""
        opcode = 0
        while opcode != FIN | CLOSE:
            opcode, payload = await self.next()
        return int.from_bytes(payload[:2])


async def bare(frontend: Frontend) -> Bare:
    """Open a WebSocket by hand."""
    reader, writer = await frontend.connect()
    writer.write("\r\n".join([*VALID, "", ""]).encode())
    async with asyncio.timeout(5):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return Bare(reader, writer)


def stop_reading(socket: Bare) -> None:
    """Take nothing any more."""
    cast("asyncio.Transport", socket.writer.transport).pause_reading()


async def pour(socket: Bare, pieces: Iterable[bytes]) -> None:
    """Send pieces until the peer hangs up."""
    try:
        for piece in pieces:
            socket.writer.write(piece)
            await socket.writer.drain()
    except ConnectionError:
        pass


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


async def test_signs_of_life(start: Starter) -> None:
    """A peer is pinged while nothing is said; one that answers stays, one that does not is given up."""
    frontend = await start(comment_interval_s=0.2, write_timeout_s=0.4)
    mute, lively = await bare(frontend), await bare(frontend)
    for _ in range(5):
        opcode, payload = await lively.next()
        assert opcode == FIN | PING
        lively.writer.write(frame(FIN | PONG, payload))
    assert await mute.closed_with() == 1011
    async with asyncio.timeout(5):
        assert await mute.reader.read() == b""
    lively.writer.write(frame(FIN | TEXT, b'{"type":"ping"}'))
    while (await lively.next())[0] != FIN | TEXT:
        pass
    for socket in (mute, lively):
        socket.writer.close()


async def test_pings_of_a_peer_that_reads_nothing(start: Starter) -> None:
    """Answers to pings do not pile up for a peer that does not read them, and it is given up in its time."""
    frontend = await start(write_timeout_s=1, comment_interval_s=60)
    socket = await bare(frontend)
    stop_reading(socket)
    flood = frame(FIN | PING, b"x" * 125) * 1000
    async with asyncio.timeout(20):
        await pour(socket, (flood for _ in range(1_000_000)))
    socket.writer.close()
    assert (await frontend.client.get("/health/live")).status_code == 200


async def test_floods_of_small_messages(frontend: Frontend) -> None:
    """A peer that sends message after message without reading waits for its answers to be taken; others go on."""
    socket = await bare(frontend)
    stop_reading(socket)
    flood = frame(FIN | TEXT, b"{") * 1000

    async def send() -> None:
        await pour(socket, (flood for _ in range(2000)))

    sending = asyncio.create_task(send())
    await asyncio.sleep(1)
    assert not sending.done()
    async with open_socket(frontend) as other:
        await other.start("a", "one")
        assert texts(chunks(await other.until("done"))) == "one "
    sending.cancel()
    socket.writer.transport.abort()
