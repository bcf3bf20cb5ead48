"""WebSockets spoken by hand, as no library would speak them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from typing import cast

from tests.frontend.conftest import Frontend

# A handshake, line by line.
VALID = [
    "GET /v1/stream HTTP/1.1",
    "host: x",
    "connection: upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
]
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
