"""Speaking over the WebSocket with the `websockets` library's client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.frontend.conftest import Frontend
from tests.frontend.requests import chat

Message = dict[str, Any]


class Socket:
    """An open WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, message: Any) -> None:
        """Send an object, or a string as it is."""
        await self.connection.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    async def start(self, generation_id: str, text: str = "one two three", **fields: Any) -> None:
        """Start a chat."""
        await self.send(start(generation_id, chat(text, **fields)))

    async def next(self, seconds: float = 5) -> Message:
        """The next message."""
        async with asyncio.timeout(seconds):
            text = await self.connection.recv()
        assert isinstance(text, str)
        message: Message = json.loads(text)
        return message

    async def until(self, kind: str, generation_id: str | None = None) -> list[Message]:
        """All messages up to the next of a kind, with it."""
        got = [await self.next()]
        while (got[-1]["type"], generation_id or got[-1].get("id")) != (kind, got[-1].get("id")):
            got.append(await self.next())
        return got

    async def ended(self, count: int) -> dict[str, list[Message]]:
        """The messages of each generation, until so many have ended."""
        by_id: dict[str, list[Message]] = {}
        while sum(messages[-1]["type"] in ("done", "error", "cancelled") for messages in by_id.values()) < count:
            message = await self.next()
            by_id.setdefault(message["id"], []).append(message)
        return by_id

    async def close_code(self) -> int | None:
        """Wait until the service closes it; the code."""
        async with asyncio.timeout(5):
            await self.connection.wait_closed()
        return self.connection.close_code


def start(generation_id: str, body: Message, endpoint: str = "chat.completions") -> Message:
    """A message that starts a generation."""
    return {"type": "start", "id": generation_id, "endpoint": endpoint, "body": body}


def chunks(messages: list[Message]) -> list[Message]:
    """What a generation's events hold."""
    return [message["data"] for message in messages if message["type"] == "event"]


@asynccontextmanager
async def open_socket(frontend: Frontend, **given: Any) -> AsyncGenerator[Socket, None]:
    """Open a WebSocket; `given` is the client's."""
    address = f"{frontend.url.replace('http', 'ws', 1)}/v1/stream"
    # It reads whatever comes, so that closing it takes no time.
    given = {"compression": None, "max_size": None, "max_queue": None, "proxy": None} | given
    async with connect(address, **given) as connection:
        yield Socket(connection)
