"""The calling side of a link: kept up, and opened again when it is lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import grpc.aio
import structlog

from services.chassis.changes import Changes
from services.chassis.errors import ServiceError, Unavailable
from services.chassis.status import error_of_call

log = structlog.get_logger(__name__)

Command = TypeVar("Command")
Frame = TypeVar("Frame")

_RECONNECT_SECONDS = 0.2
# Commands that wait go out together, up to this size; a larger one goes out alone.
_BATCH_BYTES = 256 * 1024


class LinkClient(Generic[Command, Frame]):
    """One long-lived bidirectional call to a peer.

    Args:
        peer: the peer's address, for logs and error texts.
        open_call: begins the call.
        on_frame: takes each frame in one synchronous pass.
        on_lost: is told that every stream of the link is over, and why.
        batch: makes one message of several commands. A message costs more than most commands do.
        changes: is told when the link comes up and when it is lost.
    """

    def __init__(
        self,
        peer: str,
        open_call: Callable[[], grpc.aio.StreamStreamCall[Command, Frame]],
        on_frame: Callable[[Frame], None],
        on_lost: Callable[[ServiceError], None],
        batch: Callable[[Sequence[Command]], Command],
        changes: Changes | None = None,
    ) -> None:
        self.peer = peer
        self._open_call = open_call
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._changes = changes or Changes()
        self._batch = batch
        self._commands: deque[tuple[Command, int]] = deque()
        self._waiting = asyncio.Event()
        self._connected = False

    @property
    def connected(self) -> bool:
        """Whether commands can be sent."""
        return self._connected

    def send(self, command: Command, size_bytes: int = _BATCH_BYTES) -> None:
        """Send a command, in order, in one message with others as far as its size allows.

        Raises:
            Unavailable: the link is down.
        """
        if not self._connected:
            raise Unavailable(f"no connection to {self.peer}; try again")
        self._commands.append((command, size_bytes))
        self._waiting.set()

    async def run(self) -> None:
        """Keep the link up until cancelled."""
        while True:
            call = self._open_call()
            try:
                await call.initial_metadata()
                # A call that failed at once has initial metadata too.
                if not call.done():
                    self._connected = True
                    self._changes.mark()
                    log.info("link up", peer=self.peer)
                await self._exchange(call)
                error: ServiceError = Unavailable(f"{self.peer} closed the link")
            except grpc.aio.AioRpcError as call_error:
                error = error_of_call(call_error)
            finally:
                # A call that is merely dropped keeps running on the server.
                call.cancel()
                was_connected, self._connected = self._connected, False
                self._commands.clear()
            if was_connected:
                self._changes.mark()
                log.warning("link lost", peer=self.peer, error=error.message)
                self._on_lost(Unavailable(f"the connection to {self.peer} was lost: {error.message}"))
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _exchange(self, call: grpc.aio.StreamStreamCall[Command, Frame]) -> None:
        writing = asyncio.create_task(self._write(call))
        try:
            async for frame in call:
                self._on_frame(frame)
        finally:
            writing.cancel()
            # A write fails only as the call does, and the reading told how.
            await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, call: grpc.aio.StreamStreamCall[Command, Frame]) -> None:
        while True:
            await self._waiting.wait()
            self._waiting.clear()
            while self._commands:
                await call.write(self._next())

    def _next(self) -> Command:
        command, size_bytes = self._commands.popleft()
        together = [command]
        while self._commands and size_bytes + self._commands[0][1] <= _BATCH_BYTES:
            command, more_bytes = self._commands.popleft()
            together.append(command)
            size_bytes += more_bytes
        return together[0] if len(together) == 1 else self._batch(together)
