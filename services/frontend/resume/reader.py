"""One reader of a resumable stream."""

from __future__ import annotations

import asyncio
from typing import Protocol

from services.chassis.errors import Unavailable
from services.frontend.direct_body import WriteNow
from services.frontend.resume.event_log import EventLog


class Readable(Protocol):
    """What is read: its events, and whether more may come."""

    log: EventLog
    ended: bool


class Reader:
    """Reads the events after a number, each once, in order.

    Args:
        after: number of the last event that the reader has.
        write_now: writes an event at once where that is possible.
    """

    def __init__(self, stream: Readable, after: int, write_now: WriteNow) -> None:
        self._stream = stream
        self._position = after
        self._write_now = write_now
        # Whether it has dealt with all that there was, so that the next event may be written past it.
        self._waits = False
        self._woken = asyncio.Event()
        self._error: Exception | None = None
        self._time = asyncio.get_running_loop().time
        self.last_event_time = self._time()

    def offer(self, event: bytes, number: int) -> None:
        """Take the newest event, or leave it in the log until `next`."""
        if self._waits and self._write_now(event):
            self._position = number
            self.last_event_time = self._time()
        else:
            self.wake()

    def wake(self) -> None:
        """Let `next` look again."""
        self._waits = False
        self._woken.set()

    def failed(self, error: Exception) -> None:
        """Let `next` raise an error."""
        self._error = error
        self.wake()

    async def next(self) -> bytes:
        """Return all events that came since the last time, waiting for one if there is none; nothing at the end.

        Raises:
            Unavailable: events went before they were read.
            Exception: what `failed` was given.
        """
        log = self._stream.log
        while True:
            if self._error is not None:
                raise self._error
            if self._position < log.first - 1:
                raise Unavailable("the stream was not read as fast as it came; read it faster", reason="SLOW_READER")
            if self._position < log.last:
                events = log.after(self._position)
                self._position = log.last
                self.last_event_time = self._time()
                return b"".join(events)
            if self._stream.ended:
                return b""
            self._woken.clear()
            self._waits = True
            try:
                await self._woken.wait()
            finally:
                self._waits = False
