"""Reading streams that can be picked up again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, chat


@dataclass
class Reading:
    """An open stream: its id, and its events as they come, as (number, object or `[DONE]`)."""

    id: str
    response: httpx.Response
    blocks: AsyncGenerator[str, None]

    async def next(self) -> tuple[int, Any]:
        """The next event; comments are passed over."""
        async with asyncio.timeout(5):
            async for block in self.blocks:
                if not block.startswith(":"):
                    return event_of(block)
        raise AssertionError("the stream is over")

    async def rest(self) -> list[tuple[int, Any]]:
        """All events to the stream's end."""
        async with asyncio.timeout(10):
            return [event_of(block) async for block in self.blocks if not block.startswith(":")]


def event_of(block: str) -> tuple[int, Any]:
    """Number and content of an event."""
    first, second = block.split("\n")
    content = second.removeprefix("data: ")
    return int(first.removeprefix("id: ")), content if content == "[DONE]" else json.loads(content)


def words(events: list[tuple[int, Any]]) -> str:
    """The text of a chat's events."""
    choices = [choice for _, event in events if event != "[DONE]" for choice in event.get("choices", [])]
    return "".join(choice["delta"].get("content", "") for choice in choices)


async def _blocks(response: httpx.Response) -> AsyncGenerator[str, None]:
    buffer = ""
    async for piece in response.aiter_text():
        buffer += piece
        while "\n\n" in buffer:
            block, buffer = buffer.split("\n\n", 1)
            yield block
    assert buffer == ""


@asynccontextmanager
async def _reading(client: httpx.AsyncClient, method: str, path: str, **given: Any) -> AsyncGenerator[Reading, None]:
    async with client.stream(method, path, **given) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"] == "text/event-stream"
        blocks = _blocks(response)
        yield Reading(response.headers["x-stream-id"], response, blocks)
        await blocks.aclose()


def asking(frontend: Frontend, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    """Ask for a resumable stream: a context with its reading. Leaving it closes the connection."""
    body = chat("a b", stream=True, stream_options={"resumable": True}, **fields)
    return _reading(frontend.client, "POST", CHAT, json=body, headers=headers or {})


def resuming(frontend: Frontend, stream_id: str, after: int, headers: dict[str, str] | None = None) -> Any:
    """Pick a stream up after an event: a context with its reading."""
    given = {"last-event-id": str(after)} | (headers or {})
    return _reading(frontend.client, "GET", f"/v1/streams/{stream_id}", headers=given)
