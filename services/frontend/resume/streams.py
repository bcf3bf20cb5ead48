"""All streams of this process that can be picked up again or cancelled by their id."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from services.chassis.errors import NotFound
from services.frontend.resume.stream import ResumableStream

# What a stream takes beside its events.
_STREAM_OVERHEAD_BYTES = 2048


@dataclass(frozen=True, slots=True)
class _Cancellable:
    owner: str
    cancel: Callable[[], bool]


class Streams:
    """Streams by their ids, each for its owner alone.

    Args:
        keep_seconds: time for which a stream is kept after its last reader left, and after its end.
        budget_bytes: bound on the kept events of all streams. Beyond it those that have ended go, the oldest first,
            and then the oldest events of the stream that grows.
    """

    def __init__(self, keep_seconds: float, budget_bytes: int) -> None:
        self._keep_seconds = keep_seconds
        self._budget_bytes = budget_bytes
        self._resumable: dict[str, ResumableStream] = {}
        self._cancellable: dict[str, _Cancellable] = {}
        self.size_bytes = 0

    @property
    def kept(self) -> int:
        """Number of resumable streams, running and ended."""
        return len(self._resumable)

    def open(self, owner: str) -> ResumableStream:
        """Begin a resumable stream."""
        stream_id = _new_id()

        def on_size(bytes_more: int) -> None:
            self.size_bytes += bytes_more
            if self.size_bytes > self._budget_bytes and stream_id in self._resumable:
                self._make_room(self._resumable[stream_id])

        def on_gone() -> None:
            del self._resumable[stream_id], self._cancellable[stream_id]
            self.size_bytes -= _STREAM_OVERHEAD_BYTES

        stream = ResumableStream(stream_id, owner, self._keep_seconds, on_size, on_gone)
        self._resumable[stream_id] = stream
        self._cancellable[stream_id] = _Cancellable(owner, stream.cancel)
        self.size_bytes += _STREAM_OVERHEAD_BYTES
        return stream

    @contextmanager
    def cancellable(self, owner: str, cancel: Callable[[], bool]) -> Iterator[str]:
        """Let a stream that cannot be picked up again be cancelled by the id that this yields.

        Args:
            cancel: ends the stream; returns whether it had not ended before.
        """
        stream_id = _new_id()
        self._cancellable[stream_id] = _Cancellable(owner, cancel)
        try:
            yield stream_id
        finally:
            del self._cancellable[stream_id]

    def find(self, stream_id: str, owner: str) -> ResumableStream:
        """Return a resumable stream.

        Raises:
            NotFound: there is none of this id, or it is another owner's.
        """
        stream = self._resumable.get(stream_id)
        if stream is None or stream.owner != owner:
            raise self._unknown()
        return stream

    def cancel(self, stream_id: str, owner: str) -> bool:
        """End a stream of any kind. Returns whether it is cancelled; not so when it had ended before.

        Raises:
            NotFound: there is none of this id, or it is another owner's.
        """
        found = self._cancellable.get(stream_id)
        if found is None or found.owner != owner:
            raise self._unknown()
        return found.cancel()

    def close(self) -> None:
        """End all resumable streams."""
        for stream in list(self._resumable.values()):
            stream.give_up()

    def _make_room(self, growing: ResumableStream) -> None:
        for stream in list(self._resumable.values()):
            if self.size_bytes <= self._budget_bytes:
                return
            if stream.ended and stream.unread and stream is not growing:
                stream.give_up()
        if self.size_bytes > self._budget_bytes:
            growing.trim(growing.log.size_bytes // 2)

    def _unknown(self) -> NotFound:
        told = f"there is no such stream; streams are kept for {self._keep_seconds:g} s after their end or last reader"
        return NotFound(told, param="stream_id", reason="STREAM_NOT_FOUND")


def _new_id() -> str:
    return f"strm_{uuid.uuid4().hex}"
