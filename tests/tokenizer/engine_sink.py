"""The reader of an engine's stream that keeps all it gets, and a link for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from services.chassis.changes import Changes
from services.chassis.channel import open_channel
from services.chassis.errors import ServiceError
from services.tokenizer.engine_link import EngineLink
from services.tokenizer.events import Finish
from services.tokenizer.logprobs import Logprobs
from streamomni.engine.v1 import engine_pb2
from tests.tokenizer.engine_fixtures import until


@dataclass
class Sink:
    """An engine sink that keeps all it gets. A `fault` is raised at the first delta."""

    starts: list[tuple[int, int]] = field(default_factory=list)
    deltas: list[tuple[list[int], bool]] = field(default_factory=list)
    finish: Finish | None = None
    error: ServiceError | None = None
    fault: Exception | None = None
    prompt_logprobs: Logprobs | None = None
    logprobs: list[Logprobs | None] = field(default_factory=list)

    def started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None = None) -> None:
        """Keep it."""
        self.prompt_logprobs = prompt_logprobs
        self.starts.append((prompt_tokens, cached_tokens))

    def delta(self, token_ids: list[int], ends_with_stop: bool, logprobs: Logprobs | None = None) -> None:
        """Keep it, or fail."""
        if self.fault is not None:
            raise self.fault
        self.deltas.append((token_ids, ends_with_stop))
        self.logprobs.append(logprobs)

    def finished(self, finish: Finish) -> None:
        """Keep it."""
        assert self.error is None and self.finish is None
        self.finish = finish

    def failed(self, error: ServiceError) -> None:
        """Keep it."""
        assert self.error is None and self.finish is None
        self.error = error

    @property
    def token_ids(self) -> list[int]:
        """All ids."""
        return [token_id for token_ids, _ in self.deltas for token_id in token_ids]

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.finish is not None or self.error is not None


def asking(ids: list[int], **fields: Any) -> engine_pb2.GenerateRequest:
    """A request whose prompt the engine says back."""
    return engine_pb2.GenerateRequest(prompt_token_ids=ids, **fields)


@asynccontextmanager
async def running_link(port: int) -> AsyncGenerator[EngineLink, None]:
    """A link to the engine at this port that stands."""
    address = f"127.0.0.1:{port}"
    async with open_channel(address) as channel:
        link = EngineLink(address, channel, Changes())
        running = asyncio.create_task(link.run())
        try:
            await until(lambda: link.connected)
            yield link
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
