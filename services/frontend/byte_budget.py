"""A bound on memory that many share."""

from __future__ import annotations


class ByteBudget:
    """Counts bytes that are held, up to a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0

    def take(self, size_bytes: int) -> bool:
        """Hold so many bytes more. Returns False, and holds none of them, where they exceed the limit."""
        if self._held_bytes + size_bytes > self._limit_bytes:
            return False
        self._held_bytes += size_bytes
        return True

    def give(self, size_bytes: int) -> None:
        """Hold so many bytes less."""
        self._held_bytes -= size_bytes
