"""Generations on a scripted engine, without gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from services.chassis.drain import Drain
from services.engine.generation import Generation, Generations
from services.engine.metrics import EngineMetrics
from services.engine.port import Load, Sampling
from services.engine.validation import GenerationSpec
from tests.chassis.waiting import until
from tests.engine.recording_sink import RecordingSink
from tests.fakes.scripted_engine import ScriptedEngine, ScriptedLoader, Shape

ENDLESS = Sampling(ignore_eos=True)


@dataclass
class Served:
    """Generations on a scripted engine."""

    engine: ScriptedEngine
    admission: Drain
    generations: Generations
    registry: CollectorRegistry
    loads: list[Load]

    def start(self, sampling: Sampling = ENDLESS, sink: RecordingSink | None = None, **fields: Any) -> RecordingSink:
        """Begin a generation."""
        sink = sink or RecordingSink()
        fields.setdefault("prompt_token_ids", list(range(40)))
        self.generation = self.generations.start(GenerationSpec("r", sampling=sampling, **fields), sink)
        return sink

    generation: Generation | None = None

    def count(self, name: str, **labels: str) -> float:
        """A metric's value."""
        return self.registry.get_sample_value(name, {"model_name": "m", **labels}) or 0.0

    async def assert_idle(self) -> None:
        """All places are free, and the engine has nothing left within 1 s."""
        assert self.admission.active == 0
        await until(lambda: self.loads[-1:] == [Load(0, 0, 0.0)], 1.0)


@asynccontextmanager
async def served(tick: float = 0.001, limit: int = 16, shape: Shape | None = None) -> AsyncGenerator[Served, None]:
    """Generations on a running scripted engine."""
    loader = ScriptedLoader(Path(), shape=shape or Shape(), tick_seconds=tick)
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry).of_model("m")
    admission = Drain(limit, "generations")
    loads: list[Load] = []
    async with loader.load() as engine, asyncio.TaskGroup() as group:
        generations = Generations(engine, admission, metrics, loads.append, group)
        running = group.create_task(engine.run(generations.on_step))
        yield Served(loader.engine, admission, generations, registry, loads)
        running.cancel()
