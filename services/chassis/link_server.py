"""The serving side of a link: one bidirectional call that carries many streams."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Generic, NoReturn, TypeVar

import grpc.aio

from services.chassis.errors import Unavailable
from services.chassis.grpc_boundary import write

Command = TypeVar("Command")
Frame = TypeVar("Frame")

# Bound on what waits for a peer that takes nothing. Passing it ends the link.
OUTBOX_LIMIT_BYTES = 32 * 1024 * 1024


class Outbox(ABC, Generic[Frame]):
    """What happened on a link since its last frame.

    Producers add synchronously; what they add in one pass, and while a write is
    under way, goes out as one frame. Subclasses add by methods of their own,
    each of which ends with `_added`.
    """

    def __init__(self, limit_bytes: int = OUTBOX_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._waiting_bytes = 0
        self._ready = asyncio.Event()
        self._closed = False
        self._overflowed = asyncio.Event()

    @abstractmethod
    def _take(self) -> Frame:
        """Return all that has gathered as one frame, and forget it."""

    def _added(self, size_bytes: int) -> None:
        if not self._waiting_bytes:
            self._ready.set()
        # At least 1, so that what waits is never taken for nothing.
        self._waiting_bytes += size_bytes + 1
        if self._waiting_bytes > self._limit_bytes:
            self._overflowed.set()

    def close(self) -> None:
        """End `frames` after what waits."""
        self._closed = True
        self._ready.set()

    async def overflow(self) -> NoReturn:
        """Wait until more waits than the limit.

        Raises:
            Unavailable: when it does.
        """
        await self._overflowed.wait()
        raise Unavailable(f"link ended: its reader lags more than {self._limit_bytes} bytes behind")

    async def frames(self) -> AsyncGenerator[Frame, None]:
        """Yield frames until the outbox is closed.

        Raises:
            Unavailable: the peer takes frames more slowly than they come.
        """
        while True:
            await self._ready.wait()
            self._ready.clear()
            if self._overflowed.is_set():
                await self.overflow()
            if self._waiting_bytes:
                self._waiting_bytes = 0
                yield self._take()
                if self._closed:
                    self._ready.set()
            elif self._closed:
                return


async def serve_link(
    commands: AsyncIterator[Command],
    context: grpc.aio.ServicerContext[Any, Any],
    execute: Callable[[Command], None],
    outbox: Outbox[Frame],
) -> None:
    """Execute a link's commands and write its frames until the client closes it.

    The caller cancels what was started on the link when this returns or raises.

    Args:
        execute: carries out one command at once; what comes of it goes to `outbox`.
            It reports the failure of one stream there; what it raises ends the link.

    Raises:
        Unavailable: the peer takes frames more slowly than they come, or none at all.
    """
    # Tells the client that the link stands, long before there is a frame.
    await context.send_initial_metadata(())

    async def read() -> None:
        async for command in commands:
            execute(command)
        outbox.close()

    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read())
            # A write that is blocked must not let the outbox grow meanwhile.
            overflowing = group.create_task(outbox.overflow())
            async with aclosing(outbox.frames()) as frames:
                async for frame in frames:
                    await write(context, frame)
            reading.cancel()
            overflowing.cancel()
    except ExceptionGroup as failures:
        # The boundary tells the peer one error, by its own class.
        raise failures.exceptions[0] from None
