"""Telling any number of watchers that something changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator


class Changes:
    """Wakes those who wait for the next change."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def mark(self) -> None:
        """Something changed."""
        waiting, self._next = self._next, asyncio.Event()
        waiting.set()

    async def each(self, least_seconds: float = 0.0) -> AsyncGenerator[None, None]:
        """Yield at once, then after changes; several within `least_seconds` count as one."""
        while True:
            changed = self._next
            yield
            if least_seconds:
                await asyncio.sleep(least_seconds)
            await changed.wait()
