"""A script that a test leads step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, finished, started


class Steps:
    """A script that says one word each time it is told to, `w0 w1 w2 …`, and then ends or fails."""

    def __init__(self) -> None:
        self._told: asyncio.Queue[int | Exception | None] = asyncio.Queue()

    def say(self, words: int) -> None:
        """Let it say so many words more."""
        self._told.put_nowait(words)

    def finish(self) -> None:
        """Let it end."""
        self._told.put_nowait(None)

    def fail(self, error: Exception) -> None:
        """Let it fail."""
        self._told.put_nowait(error)

    async def __call__(self, request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        """Run one generation."""
        yield started(request)
        said = 0
        while (told := await self._told.get()) is not None:
            if isinstance(told, Exception):
                raise told
            for _ in range(told):
                yield text_pb2.Delta(token_ids=[said], text=f"w{said} ")
                said += 1
        yield finished(said)
