"""The scripted engine keeps the port's contract, so tests upon it speak of the real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from services.engine.port import EngineDead, EngineRequest, Load, Sampling, Step
from tests.contracts.engine_contract import EngineContract
from tests.contracts.live_engine import LiveEngine, live_engine
from tests.fakes.scripted_engine import ScriptedLoader


@pytest_asyncio.fixture
async def live(tmp_path: Path) -> AsyncGenerator[LiveEngine, None]:
    """A scripted engine of its own for each test."""
    async with live_engine(ScriptedLoader(tmp_path, tick_seconds=0.001)) as engine:
        yield engine


class TestScriptedEngine(EngineContract):
    pass


async def test_death_ends_run(tmp_path: Path) -> None:
    """An engine that dies says so from `run`, and the loader gives a new one."""
    loader = ScriptedLoader(tmp_path)
    for _ in range(2):
        async with live_engine(loader) as live:
            live.start([1], Sampling())
            loader.engine.die()
            assert await live.until(lambda: live.failure is not None, 1.0)
            assert isinstance(live.failure, EngineDead)
    assert len(loader.engines) == 2


async def test_hang_gives_no_steps(tmp_path: Path) -> None:
    """A hung engine gives nothing until it resumes."""
    loader = ScriptedLoader(tmp_path)
    async with live_engine(loader) as live:
        loader.engine.hang()
        record = live.start([1], Sampling(max_tokens=2))
        await asyncio.sleep(0.02)
        assert record.outputs == []
        loader.engine.resume()
        assert len((await live.end_of(record)).token_ids) == 2


async def test_failing_loads_are_told(tmp_path: Path) -> None:
    """A loader that is told to fail raises EngineDead as often, then loads."""
    loader = ScriptedLoader(tmp_path)
    loader.failing_loads = 1
    with pytest.raises(EngineDead):
        async with loader.load():
            pass
    async with loader.load() as engine:
        assert engine.limits.vocab_size == 49152


async def test_steps_under_way_still_come(tmp_path: Path) -> None:
    """Output that was computed before an abort is still handed out, as another process would; then none."""
    loader = ScriptedLoader(tmp_path, tick_seconds=0.01)
    steps: list[Step] = []
    async with loader.load() as engine:
        running = asyncio.create_task(engine.run(steps.append))
        engine.add(EngineRequest("a", [1], Sampling(ignore_eos=True)))
        await asyncio.sleep(0.005)
        engine.abort(["a"])
        await asyncio.sleep(0.05)
        running.cancel()
    assert [len(step.outputs) for step in steps] == [1, 0]
    assert steps[-1].load == Load(0, 0, 0.0)
