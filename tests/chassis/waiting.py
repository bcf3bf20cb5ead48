"""Waiting for what no event tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: it did not in time.
    """
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)
