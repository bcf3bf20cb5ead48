"""The events of one resumable stream: numbered, so that a reader can say which it has, and bounded."""

from __future__ import annotations

# What an event takes beside its own bytes.
EVENT_OVERHEAD_BYTES = 64


class EventLog:
    """Server-sent events with their ids, which count from 1. The oldest go where there is no room."""

    __slots__ = ("_events", "_first", "size_bytes")

    def __init__(self) -> None:
        self._events: list[bytes] = []
        # Number of the oldest event that is kept, or of the next one.
        self._first = 1
        self.size_bytes = 0

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept; one more than `last` where none is."""
        return self._first

    @property
    def last(self) -> int:
        """Number of the newest event; 0 before there was one."""
        return self._first + len(self._events) - 1

    def append(self, event: bytes) -> bytes:
        """Add an event and return it with its id, as it is sent.

        https://html.spec.whatwg.org/multipage/server-sent-events.html#the-last-event-id-header
        """
        numbered = b"id: %d\n%b" % (self.last + 1, event)
        self._events.append(numbered)
        self.size_bytes += len(numbered) + EVENT_OVERHEAD_BYTES
        return numbered

    def after(self, number: int) -> list[bytes]:
        """Return the events after a number, which must not be below `first` - 1."""
        return self._events[number + 1 - self._first :]

    def trim(self, limit_bytes: int) -> None:
        """Let the oldest events go until the rest takes at most `limit_bytes`. The newest stays."""
        gone = 0
        while self.size_bytes > limit_bytes and gone < len(self._events) - 1:
            self.size_bytes -= len(self._events[gone]) + EVENT_OVERHEAD_BYTES
            gone += 1
        del self._events[:gone]
        self._first += gone
