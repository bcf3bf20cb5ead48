"""Noticing that the reader of a connection takes nothing any more."""

from __future__ import annotations

import asyncio

import structlog

log = structlog.get_logger(__name__)


class StallWatch:
    """Aborts a connection whose reader takes nothing for `timeout` seconds while there is something to take."""

    def __init__(self, transport: asyncio.Transport, timeout: float, peer: object) -> None:
        self._transport = transport
        self._timeout = timeout
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin to wait for the reader."""
        self.end()
        waiting_bytes = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(self._timeout, self._check, waiting_bytes)

    def end(self) -> None:
        """The reader has taken enough, or is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, waiting_bytes: int) -> None:
        if self._transport.get_write_buffer_size() < waiting_bytes:
            self.begin()
            return
        log.warning("connection aborted: its reader takes nothing", peer=self._peer)
        self._transport.abort()
