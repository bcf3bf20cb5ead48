"""A bounded hand-over from a synchronous producer to one asynchronous reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Items for one reader, who takes all that has gathered at once.

    Args:
        limit_bytes: most bytes that wait. An item that finds nothing waiting is
            taken whatever its size.
        take_now: is offered each item while the reader waits with nothing
            before it; returns whether it took it, past the reader.
    """

    __slots__ = (
        "_closed",
        "_error",
        "_items",
        "_limit_bytes",
        "_reader_waits",
        "_ready",
        "_take_now",
        "_waiting_bytes",
    )

    def __init__(self, limit_bytes: int, take_now: Callable[[T], bool] | None = None) -> None:
        self._limit_bytes = limit_bytes
        self._take_now = take_now
        # Whether the reader has dealt with all that it took.
        self._reader_waits = False
        self._items: list[T] = []
        self._waiting_bytes = 0
        self._closed = False
        self._error: Exception | None = None
        self._ready = asyncio.Event()

    def put(self, item: T, size_bytes: int) -> bool:
        """Add an item.

        Returns: False when the reader is too slow: the item does not fit and was
        not taken. The producer then ends its work and closes the mailbox.
        """
        if self._closed:
            return True
        if self._reader_waits and not self._items and self._take_now is not None and self._take_now(item):
            return True
        if self._items and self._waiting_bytes + size_bytes > self._limit_bytes:
            return False
        self._items.append(item)
        self._waiting_bytes += size_bytes
        self._ready.set()
        return True

    def close(self, error: Exception | None = None) -> None:
        """End the reader's iteration after what waits, with `error` if there is one."""
        if not self._closed:
            self._closed = True
            self._error = error
            self._ready.set()

    async def batches(self) -> AsyncGenerator[list[T], None]:
        """Yield all that has gathered, again and again, until the mailbox is closed.

        Raises: the error that the mailbox was closed with.
        """
        while True:
            self._reader_waits = True
            await self._ready.wait()
            self._reader_waits = False
            items, self._items = self._items, []
            self._waiting_bytes = 0
            if items:
                yield items
                continue
            if self._closed:
                if self._error is not None:
                    raise self._error
                return
            self._ready.clear()
