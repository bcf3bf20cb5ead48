"""A small real HTTP server that answers byte for byte as a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
CHUNKED_HEAD = HEAD + b"transfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def event(content: Any) -> bytes:
    """An event in OpenAI's form."""
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"


def token(text: str = "word", index: int = 0, finish_reason: str | None = None) -> bytes:
    """A chunk of a completion that brings a token."""
    return event({"choices": [{"index": index, "text": text, "finish_reason": finish_reason}]})


def usage(completion_tokens: int, prompt_tokens: int = 5) -> bytes:
    """The chunk that tells the usage."""
    details = {"cached_tokens": 2}
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "prompt_tokens_details": details}
    return event({"choices": [], "usage": counts})


def chunked(body: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def sized(status: str, body: bytes, content_type: str = "application/json") -> bytes:
    """A whole answer with its length."""
    return f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Exchange:
    """One request and the connection to answer on."""

    head: str
    body: dict[str, Any]
    number: int
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    async def send(self, *parts: bytes, pause_s: float = 0.0) -> None:
        """Write parts, each in a segment of its own where there is a pause."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            if pause_s:
                await asyncio.sleep(pause_s)

    async def answer(self, tokens: int, pause_s: float = 0.0) -> None:
        """Stream a whole good answer."""
        events = [token() for _ in range(tokens)]
        end = [chunked(usage(tokens)), chunked(DONE), LAST_CHUNK]
        await self.send(CHUNKED_HEAD, *map(chunked, events), pause_s=pause_s)
        await self.send(*end)


Script = Callable[[Exchange], Awaitable[None]]


@dataclass
class SseServer:
    """A running server. `left` counts connections that the caller closed while an answer was under way."""

    script: Script
    port: int = 0
    connections: int = 0
    left: int = 0
    running: int = 0
    most_running: int = 0
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
                length = int(head.rpartition("content-length: ")[2].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                exchange = Exchange(head, body, len(self.exchanges), writer, reader)
                self.exchanges.append(exchange)
                await self._answer(exchange)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, exchange: Exchange) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.script(exchange)
        except ConnectionError:
            self.left += 1
            raise
        finally:
            self.running -= 1


@asynccontextmanager
async def sse_server(script: Script) -> AsyncGenerator[SseServer, None]:
    """Serve on a free port until the block is left."""
    server = SseServer(script)
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(server.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
