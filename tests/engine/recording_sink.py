"""A sink that keeps what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from services.chassis.errors import ServiceError
from services.engine.generation import Usage
from services.engine.port import Finish, Logprobs, Prefilled


@dataclass
class RecordingSink:
    """Keeps all events in order; `on_event` may act inside one."""

    on_event: Callable[[str], None] = lambda _: None
    events: list[str] = field(default_factory=list)
    prompt_tokens: int = -1
    prefilled: Prefilled | None = None
    token_ids: dict[int, list[int]] = field(default_factory=dict)
    logprobs: list[Logprobs | None] = field(default_factory=list)
    finishes: dict[int, tuple[Finish, Usage]] = field(default_factory=dict)
    error: ServiceError | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def started(self, prompt_tokens: int, prefilled: Prefilled) -> None:
        """Keep it."""
        self.prompt_tokens, self.prefilled = prompt_tokens, prefilled
        self._note("started")

    def delta(self, index: int, token_ids: list[int], logprobs: Logprobs | None) -> None:
        """Keep it."""
        self.token_ids.setdefault(index, []).extend(token_ids)
        self.logprobs.append(logprobs)
        self._note("delta")

    def finished(self, index: int, finish: Finish, usage: Usage) -> None:
        """Keep it."""
        assert index not in self.finishes
        self.finishes[index] = (finish, usage)
        self._note("finished")

    def failed(self, error: ServiceError) -> None:
        """Keep it."""
        assert self.error is None
        self.error = error
        self._note("failed")

    async def until(self, event: str, count: int = 1) -> None:
        """Wait until an event came that often."""
        async with asyncio.timeout(5.0):
            while self.events.count(event) < count:
                self.changed.clear()
                await self.changed.wait()

    def _note(self, event: str) -> None:
        self.events.append(event)
        self.changed.set()
        self.on_event(event)
