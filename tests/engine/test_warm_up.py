from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from services.chassis.drain import Drain
from services.chassis.errors import Unavailable
from services.engine.generation import Generations
from services.engine.metrics import EngineMetrics
from services.engine.port import EngineDead, Finish, FinishReason, Limits, Output, Prefilled, Step
from services.engine.warm_up import warm_up
from tests.fakes.scripted_engine import ScriptedEngine, ScriptedLoader, Shape


@asynccontextmanager
async def generations(shape: Shape | None = None) -> AsyncGenerator[tuple[Generations, ScriptedEngine, Drain], None]:
    """Generations on a running scripted engine, its engine, and the places."""
    loader = ScriptedLoader(Path(), shape=shape or Shape())
    admission = Drain(4, "generations")
    metrics = EngineMetrics(CollectorRegistry()).of_model("m")
    async with loader.load() as engine, asyncio.TaskGroup() as group:
        served = Generations(engine, admission, metrics, lambda load: None, group)
        running = group.create_task(engine.run(served.on_step))
        yield served, loader.engine, admission
        running.cancel()


async def test_it_generates_greedily_and_sampling() -> None:
    """Both ways of choosing tokens are run once, and all places are free afterwards."""
    temperatures: list[float | None] = []
    async with generations() as (served, engine, admission):
        add = engine.add

        def keeping(request):  # type: ignore[no-untyped-def]
            temperatures.append(request.sampling.temperature)
            add(request)

        engine.add = keeping  # type: ignore[method-assign]
        assert await warm_up(served) >= 0.0
        assert temperatures == [0.0, 1.0]
        assert admission.active == 0


async def test_hung_engine_is_given_up() -> None:
    """An engine that gives no token in time is as good as dead; its place is free and a late end harms nothing."""
    async with generations() as (served, engine, admission):
        engine.hang()
        with pytest.raises(EngineDead, match=r"no token within 0\.05 s"):
            await warm_up(served, timeout=0.05)
        assert admission.active == 0
        engine.resume()
        await asyncio.sleep(0.02)


async def test_cancelled_warm_up_leaves_nothing() -> None:
    """A warm-up that is cancelled has given its place back."""
    async with generations() as (served, engine, admission):
        engine.hang()
        warming = asyncio.create_task(warm_up(served))
        await asyncio.sleep(0.02)
        assert admission.active == 1
        warming.cancel()
        await asyncio.gather(warming, return_exceptions=True)
        assert admission.active == 0


async def test_end_in_the_moment_of_a_cancel() -> None:
    """A first generation that ends, or fails, while its waiting is being cancelled harms neither engine nor caller."""
    for ending in (lambda served: None, lambda served: served.fail_all(Unavailable("over"))):
        async with generations() as (served, engine, admission):
            engine.hang()
            warming = asyncio.create_task(warm_up(served))
            await asyncio.sleep(0.02)
            warming.cancel()
            ending(served)
            served.on_step(Step([Output("0-0", [1], Prefilled(0), finish=Finish(FinishReason.LENGTH))], None))
            await asyncio.gather(warming, return_exceptions=True)
            assert warming.cancelled() and admission.active == 0


async def test_model_that_refuses_the_first_request_is_dead() -> None:
    """A model whose limits allow not even the warm-up cannot be served, and the text tells why."""
    shape = Shape(limits=Limits(context_length=1, vocab_size=10, max_logprobs=1, supports_priority=False))
    async with generations(shape) as (served, _, admission):
        with pytest.raises(EngineDead, match="first generation failed: the prompt has 1 tokens"):
            await warm_up(served)
        assert admission.active == 0
