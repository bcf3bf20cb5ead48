"""A loaded engine as the contract tests use it: requests in, what came of each out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from services.engine.port import Engine, EngineDead, EngineLoader, EngineRequest, Finish, Load, Output, Sampling, Step

# Far above what any step takes, far below the test's own limit.
PATIENCE_SECONDS = 60.0


@dataclass(slots=True)
class Record:
    """What came of one request."""

    request_id: str
    outputs: list[Output] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def token_ids(self) -> list[int]:
        """All tokens so far."""
        return [token_id for output in self.outputs for token_id in output.token_ids]

    @property
    def finish(self) -> Finish:
        """The one finish."""
        (finish,) = [output.finish for output in self.outputs if output.finish is not None]
        return finish

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens found in the prefix cache."""
        assert self.outputs[0].prefilled is not None
        return self.outputs[0].prefilled.cached_tokens


class LiveEngine:
    """Runs an engine and keeps what it gives."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.load = Load(0, 0, 0.0)
        self.most_running = 0
        self.most_waiting = 0
        self._records: dict[str, Record] = {}
        self._numbers = itertools.count()
        self._stepped = asyncio.Event()
        self.failure: BaseException | None = None

    async def run(self) -> None:
        """Take steps until cancelled; the engine's end is kept in `failure`."""
        try:
            await self.engine.run(self._on_step)
        except EngineDead as dead:
            self.failure = dead
            self._stepped.set()

    def start(
        self,
        prompt_token_ids: Sequence[int],
        sampling: Sampling,
        cache_salt: str | None = None,
        priority: int = 0,
        constraint: object | None = None,
    ) -> Record:
        """Queue a request."""
        record = Record(f"contract-{next(self._numbers)}")
        request = EngineRequest(record.request_id, prompt_token_ids, sampling, priority, cache_salt, None, constraint)
        self._records[record.request_id] = record
        self.engine.add(request)
        return record

    async def generate(
        self, prompt_token_ids: Sequence[int], sampling: Sampling, cache_salt: str | None = None
    ) -> Record:
        """Queue a request and wait for its end."""
        return await self.end_of(self.start(prompt_token_ids, sampling, cache_salt))

    async def launch(self, prompt_token_ids: Sequence[int], sampling: Sampling) -> Record:
        """Compile the sampling's structured output and queue a request."""
        assert sampling.structured_output is not None
        constraint = await self.engine.compile(sampling.structured_output)
        return self.start(prompt_token_ids, sampling, constraint=constraint)

    async def constrained(self, prompt_token_ids: Sequence[int], sampling: Sampling) -> Record:
        """The same, and wait for its end."""
        return await self.end_of(await self.launch(prompt_token_ids, sampling))

    async def end_of(self, record: Record) -> Record:
        """Wait for the end of a request."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await record.ended.wait()
        return record

    async def begin_of(self, record: Record) -> Record:
        """Wait for the first output of a request."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await record.begun.wait()
        return record

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for steps until `holds`; whether it did in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds():
                    self._stepped.clear()
                    await self._stepped.wait()
        return holds()

    def idle(self) -> bool:
        """Whether the last step reported that nothing runs, waits or holds memory."""
        return self.load == Load(0, 0, 0.0)

    def _on_step(self, step: Step) -> None:
        for output in step.outputs:
            record = self._records[output.request_id]
            record.outputs.append(output)
            record.begun.set()
            if output.finish is not None or output.failed:
                record.ended.set()
        if step.load is not None:
            self.load = step.load
            self.most_running = max(self.most_running, step.load.running)
            self.most_waiting = max(self.most_waiting, step.load.waiting)
        self._stepped.set()


@asynccontextmanager
async def live_engine(loader: EngineLoader) -> AsyncGenerator[LiveEngine, None]:
    """Load an engine and run it while the block lasts."""
    async with loader.load() as engine:
        live = LiveEngine(engine)
        running = asyncio.create_task(live.run())
        try:
            yield live
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
