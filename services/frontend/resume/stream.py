"""A stream that outlives its connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from services.chassis.errors import DeadlineExceeded, InternalError, ServiceError
from services.frontend.chunks import error_event
from services.frontend.direct_body import WriteNow
from services.frontend.errors import StreamCancelled, error_object
from services.frontend.resume.event_log import EventLog
from services.frontend.resume.reader import Reader
from services.frontend.running import Running

# What is kept of one stream for readers who come back.
STREAM_BYTES = 1024 * 1024
# Trimmed to this, lest each event trims again.
_TRIMMED_BYTES = STREAM_BYTES * 7 // 8


class ResumableStream:
    """One generation's events, kept for readers who come and go.

    It is an `Outlet`. Without a reader the generation goes on for `keep_seconds` and is then cancelled; for as long its
    events are kept once it is over.

    Args:
        on_size: is told by how many bytes the kept events have grown, or shrunk.
        on_gone: is called once, when nothing is kept any more.
    """

    def __init__(
        self,
        stream_id: str,
        owner: str,
        keep_seconds: float,
        on_size: Callable[[int], None],
        on_gone: Callable[[], None],
    ) -> None:
        self.id = stream_id
        self.owner = owner
        self.log = EventLog()
        self.ended = False
        self.cancelled = False
        # What ended it, where that was no finish.
        self.error: ServiceError | None = None
        self._keep_seconds = keep_seconds
        self._on_size = on_size
        self._on_gone = on_gone
        self._readers: list[Reader] = []
        self._running: Running | None = None
        self._on_end: Callable[[], None] | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._gone = False

    @property
    def unread(self) -> bool:
        """Whether nobody reads it."""
        return not self._readers

    def run(self, running: Running, on_end: Callable[[], None], timeout: float | None) -> None:
        """Take over a generation whose events come here.

        Args:
            on_end: is called once, when it is over.
            timeout: most seconds that it may take.
        """
        self._running, self._on_end = running, on_end
        if self.ended:
            # A generation may fail while it is being started.
            self._conclude()
        elif timeout is not None:
            self._deadline = asyncio.get_running_loop().call_later(timeout, self._time_out, timeout)

    def put(self, item: bytes, size_bytes: int) -> bool:
        """Take an event, for all readers and for those to come. No reader is too slow for that."""
        if not self.ended:
            self._append(item)
        return True

    def close(self, error: Exception | None = None) -> None:
        """End the stream. An error is its last event."""
        if self.ended:
            return
        if error is not None:
            self.error = error if isinstance(error, ServiceError) else InternalError()
            self._append(error_event(error_object(self.error)))
        self.ended = True
        for reader in self._readers:
            reader.wake()
        self._keep_for_a_while()
        self._conclude()

    def cancel(self) -> bool:
        """End the generation, and the stream with an error event that says so.

        Returns: whether it is cancelled; not so when it had ended before.
        """
        if not self.ended:
            self.cancelled = True
            self._end_with(StreamCancelled("the stream was cancelled on request"))
        return self.cancelled

    def give_up(self) -> None:
        """End the generation and keep nothing."""
        if self._gone:
            return
        self._gone = True
        if not self.ended:
            self._end_with(StreamCancelled("nobody read the stream for longer than it is kept"))
        if self._expiry is not None:
            self._expiry.cancel()
        self._on_size(-self.log.size_bytes)
        self._on_gone()

    def trim(self, limit_bytes: int) -> None:
        """Keep at most so many bytes of events."""
        before = self.log.size_bytes
        self.log.trim(limit_bytes)
        self._on_size(self.log.size_bytes - before)

    @contextmanager
    def reading(self, after: int, write_now: WriteNow) -> Iterator[Reader]:
        """Read the events after a number; the stream is kept meanwhile."""
        reader = Reader(self, after, write_now)
        self._readers.append(reader)
        if self._expiry is not None and not self.ended:
            self._expiry.cancel()
        try:
            yield reader
        finally:
            self._readers.remove(reader)
            if not self._readers and not self.ended:
                self._keep_for_a_while()

    def _append(self, event: bytes) -> None:
        before = self.log.size_bytes
        numbered = self.log.append(event)
        if self.log.size_bytes > STREAM_BYTES:
            self.log.trim(_TRIMMED_BYTES)
        for reader in self._readers:
            reader.offer(numbered, self.log.last)
        self._on_size(self.log.size_bytes - before)

    def _end_with(self, error: ServiceError) -> None:
        if self._running is not None:
            self._running.cancel()
        self.close(error)

    def _time_out(self, timeout: float) -> None:
        allowed = f"the answer took more than the {timeout:g} s that are allowed; ask for fewer tokens"
        self._end_with(DeadlineExceeded(allowed))

    def _keep_for_a_while(self) -> None:
        if self._gone:
            return
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(self._keep_seconds, self.give_up)

    def _conclude(self) -> None:
        # It holds the request's texts, which nobody needs while the events are kept.
        self._running = None
        if self._deadline is not None:
            self._deadline.cancel()
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end()
