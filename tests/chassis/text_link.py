"""A link of plain text, for tests of links as such."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from services.chassis.grpc_boundary import Context
from services.chassis.link_server import OUTBOX_LIMIT_BYTES, Outbox, serve_link


class TextOutbox(Outbox[bytes]):
    """Joins texts with commas."""

    def __init__(self, limit_bytes: int = OUTBOX_LIMIT_BYTES) -> None:
        super().__init__(limit_bytes)
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """Add a text."""
        self._texts.append(text)
        self._added(len(text))

    def _take(self) -> bytes:
        texts, self._texts = self._texts, []
        return ",".join(texts).encode()


class TextLink:
    """The serving side of one link after another, which echoes commands.

    `do WORD` calls the action of that name instead.
    """

    def __init__(self, limit_bytes: int = OUTBOX_LIMIT_BYTES, **actions: Callable[[TextOutbox], None]) -> None:
        self.commands: list[str] = []
        self.outboxes: list[TextOutbox] = []
        self.ended = asyncio.Event()
        self._limit_bytes = limit_bytes
        self._actions = actions

    @property
    def methods(self) -> dict[str, Any]:
        """The method `Link`."""
        return {"Link": grpc.stream_stream_rpc_method_handler(self._serve)}

    async def _serve(self, request_iterator: AsyncIterator[bytes], context: Context) -> None:
        outbox = TextOutbox(self._limit_bytes)
        self.outboxes.append(outbox)
        self.ended.clear()

        def execute(command: bytes) -> None:
            text = command.decode()
            self.commands.append(text)
            if text.startswith("do "):
                self._actions[text.removeprefix("do ")](outbox)
            else:
                outbox.add(text)

        try:
            await serve_link(request_iterator, context, execute, outbox)
        finally:
            self.ended.set()
