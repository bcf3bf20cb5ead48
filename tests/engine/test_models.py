from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from services.chassis.changes import Changes
from services.chassis.drain import Drain
from services.chassis.errors import Loading, NotFound, Unavailable
from services.engine.metrics import EngineMetrics
from services.engine.models import Model, Models, ModelState
from services.engine.port import EngineDead, Load, Sampling
from services.engine.validation import GenerationSpec
from tests.chassis.waiting import until
from tests.engine.engine_service import tokenizer_directory
from tests.engine.recording_sink import RecordingSink
from tests.fakes.scripted_engine import ScriptedLoader

SPEC = GenerationSpec("r", [1, 2, 3], Sampling(ignore_eos=True))


@dataclass
class Loaded:
    """A model and what surrounds it."""

    loader: ScriptedLoader
    model: Model
    admission: Drain
    registry: CollectorRegistry
    changes: Changes

    @property
    def state(self) -> ModelState:
        """The model's state."""
        return self.model.status().state

    def value(self, name: str) -> float | None:
        """A metric's value."""
        return self.registry.get_sample_value(name, {"model_name": "m"})


def loaded(path: Path, reload_seconds: Sequence[float] = (0.02, 0.1), **fields: Any) -> Loaded:
    """A model that does not run yet."""
    loader = ScriptedLoader(tokenizer_directory(path), **fields)
    registry, admission, changes = CollectorRegistry(), Drain(8, "generations"), Changes()
    metrics = EngineMetrics(registry).of_model("m")
    return Loaded(loader, Model("m", loader, admission, metrics, changes, reload_seconds), admission, registry, changes)


@asynccontextmanager
async def running(path: Path, **fields: Any) -> AsyncGenerator[Loaded, None]:
    """A model that runs; it begins to load with the block."""
    it = loaded(path, **fields)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(it.model.run())
        yield it
        task.cancel()


async def test_loading_then_ready(tmp_path: Path) -> None:
    """While it loads, requests and its tokenizer are refused as Loading with a time to wait; then it serves."""
    async with running(tmp_path, load_seconds=0.05) as it:
        await asyncio.sleep(0)
        assert it.state is ModelState.LOADING and not it.model.ready
        for refused in (lambda: it.model.start(SPEC, RecordingSink()), it.model.tokenizer_files):
            with pytest.raises(Loading) as refusal:
                refused()
            assert refusal.value.retry_after == 5.0
        assert it.model.status().tokenizer_digest == "" and it.model.status().limits is None
        await until(lambda: it.model.ready)
        status = it.model.status()
        assert (status.state, status.failure, status.max_generations) == (ModelState.READY, "", 8)
        assert status.limits == it.loader.shape.limits and len(status.tokenizer_digest) == 64
        sink = RecordingSink()
        it.model.start(SPEC, sink)
        await sink.until("delta")


async def test_warm_up_comes_before_ready(tmp_path: Path) -> None:
    """A model is not ready before its first tokens came."""
    async with running(tmp_path, tick_seconds=0.05) as it:
        await until(lambda: it.loader.engines != [])
        await asyncio.sleep(0.02)
        assert it.state is ModelState.LOADING
        with pytest.raises(Loading):
            it.model.start(SPEC, RecordingSink())
        await until(lambda: it.model.ready)
        assert it.admission.active == 0


async def test_first_load_must_succeed(tmp_path: Path) -> None:
    """A model that cannot be loaded the first time ends its run with the loader's words."""
    it = loaded(tmp_path)
    it.loader.failing_loads = 1
    with pytest.raises(EngineDead, match="the scripted model cannot be loaded"):
        await it.model.run()
    assert not it.model.ready


async def test_death_in_the_first_warm_up_is_a_failed_load(tmp_path: Path) -> None:
    """An engine that dies in its first warm-up ends the run with EngineDead, and no place is lost."""
    it = loaded(tmp_path, tick_seconds=0.05)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_ends_dead(it.model))
        await until(lambda: it.admission.active == 1)
        it.loader.engine.die()
        assert await task == "the scripted engine died"
    assert it.admission.active == 0 and it.loader.engine.closed


async def _ends_dead(model: Model) -> str:
    with pytest.raises(EngineDead) as dead:
        await model.run()
    return str(dead.value)


async def test_model_without_tokenizer_is_a_failed_load(tmp_path: Path) -> None:
    """A directory without a tokenizer's files cannot be served, and the text says what to put there."""
    it = loaded(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(EngineDead, match=r"put the model's tokenizer\.json there"):
        await it.model.run()
    assert it.loader.engine.closed


async def test_dead_engine_is_loaded_again(tmp_path: Path) -> None:
    """Death fails what runs, shows FAILED with the cause at once, and a new engine serves; figures start anew."""
    async with running(tmp_path, tick_seconds=0.001, reload_seconds=(0.2,)) as it:
        await until(lambda: it.model.ready)
        sink = RecordingSink()
        it.model.start(SPEC, sink)
        await sink.until("delta", 2)
        assert it.value("vllm:num_requests_running") == 1
        it.loader.engine.die()
        await sink.until("failed")
        assert isinstance(sink.error, Unavailable) and sink.error.reason == "ENGINE_FAILED"
        assert not it.model.ready
        await until(lambda: it.loader.engine.closed)
        status = it.model.status()
        assert (status.state, status.failure) == (ModelState.FAILED, "the scripted engine died")
        assert status.load == Load(0, 0, 0.0) and it.value("vllm:num_requests_running") == 0
        with pytest.raises(Unavailable, match="is being restarted"):
            it.model.start(SPEC, RecordingSink())
        await until(lambda: it.model.ready)
        assert len(it.loader.engines) == 2 and it.model.status().failure == ""
        assert it.value("streamomni:engine_restarts_total") == 1
        again = RecordingSink()
        it.model.start(SPEC, again)
        await again.until("delta")


async def test_model_is_not_ready_while_its_dead_engine_is_freed(tmp_path: Path) -> None:
    """Freeing a dead engine takes seconds; meanwhile the model says FAILED, not READY."""

    class SlowToFree(ScriptedLoader):
        @asynccontextmanager
        async def load(self) -> AsyncGenerator[Any, None]:
            async with super().load() as engine:
                try:
                    yield engine
                finally:
                    await asyncio.sleep(0.2)

    loader = SlowToFree(tokenizer_directory(tmp_path))
    admission = Drain(8, "generations")
    model = Model("m", loader, admission, EngineMetrics(CollectorRegistry()).of_model("m"), Changes(), (0.01,))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(model.run())
        await until(lambda: model.ready)
        loader.engine.die()
        await asyncio.sleep(0.05)
        assert not loader.engine.closed
        assert model.status().state is ModelState.FAILED and not model.ready
        task.cancel()


async def test_pauses_grow_with_failures_in_a_row(tmp_path: Path) -> None:
    """Each failure in a row waits longer, the last pause repeats, and a success begins anew."""
    async with running(tmp_path, reload_seconds=(0.05, 0.1, 0.2)) as it:
        loop = asyncio.get_running_loop()
        for engines, failing_loads, pauses in ((2, 3, 0.05 + 0.1 + 0.2 + 0.2), (3, 0, 0.05)):
            await until(lambda: it.model.ready)
            it.loader.failing_loads = failing_loads
            begin = loop.time()
            it.loader.engine.die()
            await until(partial(_loaded_so_often, it, engines))
            assert pauses <= loop.time() - begin < pauses + 0.2
        assert it.value("streamomni:engine_restarts_total") == 5


def _loaded_so_often(it: Loaded, engines: int) -> bool:
    return len(it.loader.engines) == engines


async def test_cancel_fails_what_runs_and_closes_the_engine(tmp_path: Path) -> None:
    """Cancelling the run tells each generation once, gives all places back and frees the engine."""
    async with running(tmp_path) as it:
        await until(lambda: it.model.ready)
        sink = RecordingSink()
        it.model.start(SPEC, sink)
        await sink.until("delta")
    assert sink.events.count("failed") == 1 and isinstance(sink.error, Unavailable)
    assert it.admission.active == 0 and it.loader.engine.closed


async def test_models_are_found_by_name(tmp_path: Path) -> None:
    """A model is found by its name; an empty name means the only one, and with several none."""
    (tmp_path / "1").mkdir()
    one = loaded(tmp_path / "1")
    models = Models([one.model], Changes())
    assert models.find("m") is models.find("") is one.model
    for name in ("M", "../m", "m "):
        with pytest.raises(NotFound, match="served are m") as refusal:
            models.find(name)
        assert (refusal.value.param, refusal.value.reason) == ("model", "MODEL_NOT_FOUND")
    other = Model("a", one.loader, one.admission, EngineMetrics(CollectorRegistry()).of_model("a"), Changes())
    two = Models([one.model, other], Changes())
    assert [status.name for status in two.statuses()] == ["a", "m"]
    with pytest.raises(NotFound):
        two.find("")


async def test_watch_tells_states_as_they_come(tmp_path: Path) -> None:
    """A watcher sees LOADING at once and READY when it comes; all models ready makes the list ready."""
    async with running(tmp_path, load_seconds=0.05) as it:
        models = Models([it.model], it.changes)
        async with aclosing(models.watch()) as watch, asyncio.timeout(5.0):
            assert (await anext(watch))[0].state is ModelState.LOADING
            assert not models.ready
            while (await anext(watch))[0].state is not ModelState.READY:
                pass
            assert models.ready
