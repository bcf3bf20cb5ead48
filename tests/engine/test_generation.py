from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from services.chassis.drain import Drain
from services.chassis.errors import (
    Draining,
    InvalidRequest,
    Overloaded,
    ServiceError,
    Unavailable,
)
from services.engine.generation import Generations, Usage
from services.engine.metrics import EngineMetrics
from services.engine.port import Finish, FinishReason, Load, Sampling
from services.engine.validation import GenerationSpec
from tests.engine.recording_sink import RecordingSink
from tests.engine.served_generations import ENDLESS, served
from tests.fakes.scripted_engine import ScriptedEngine, Shape


async def test_one_generation_from_start_to_end() -> None:
    """started once, deltas, finished once; usage, metrics and places fit."""
    async with served() as it:
        sink = it.start(Sampling(max_tokens=5, ignore_eos=True))
        assert it.admission.active == 1
        await sink.until("finished")
        assert sink.events == ["started", *["delta"] * 5, "finished"]
        assert sink.prompt_tokens == 40 and len(sink.token_ids[0]) == 5
        assert sink.finishes[0] == (Finish(FinishReason.LENGTH), Usage(40, 5, 0))
        await it.assert_idle()
        assert it.count("vllm:prompt_tokens_total") == 40
        assert it.count("vllm:generation_tokens_total") == 5
        assert it.count("vllm:request_success_total", finished_reason="length") == 1
        assert it.count("vllm:time_to_first_token_seconds_count") == 1
        assert it.count("vllm:inter_token_latency_seconds_count") == 4
        assert it.count("vllm:e2e_request_latency_seconds_count") == 1
        assert it.count("streamomni:generations_cancelled_total") == 0
        again = it.start(Sampling(max_tokens=1, ignore_eos=True))
        await again.until("finished")
        assert again.finishes[0][1] == Usage(40, 1, 32)
        assert it.count("vllm:prompt_tokens_cached_total") == 32


async def test_choices_differ_and_end_one_by_one() -> None:
    """n choices start once, each has its own tokens and one end, and each end gives one place back."""
    async with served() as it:
        sink = it.start(Sampling(max_tokens=6, ignore_eos=True, temperature=1.0, seed=2**63 - 2), n=4)
        assert it.admission.active == 4
        await sink.until("finished", 4)
        assert sink.events.count("started") == 1 and sink.events[0] == "started"
        assert sorted(sink.finishes) == sorted(sink.token_ids) == [0, 1, 2, 3]
        assert len(set(map(tuple, sink.token_ids.values()))) == 4
        await it.assert_idle()


async def test_places_are_limited() -> None:
    """Choices beyond the places are refused as overload, take no place, and leave the others alone."""
    async with served(limit=4) as it:
        it.start(n=3)
        with pytest.raises(Overloaded):
            it.start(n=2)
        assert it.admission.active == 3
        it.start(n=1)
        it.generations.fail_all(Unavailable("over"))
        assert it.admission.active == 0


async def test_more_choices_than_places_never_fit() -> None:
    """More choices than there are places in all are the request's fault: no later try would help."""
    async with served(limit=4) as it:
        with pytest.raises(InvalidRequest) as refusal:
            it.start(n=5)
        assert refusal.value.param == "n" and "4" in refusal.value.message


async def test_drain_refuses_new_and_waits_for_running() -> None:
    """A draining tier refuses new generations and is idle when those under way have ended."""
    async with served() as it:
        sink = it.start(Sampling(max_tokens=30, ignore_eos=True), n=2)
        draining = asyncio.create_task(it.admission.drain(5.0))
        await asyncio.sleep(0)
        with pytest.raises(Draining):
            it.start()
        assert await draining is True
        assert len(sink.finishes) == 2


async def test_refusal_by_the_engine_gives_all_places_back() -> None:
    """When the engine's library refuses one choice, those added before are aborted and no place is lost."""

    class RefusesThird(ScriptedEngine):
        added = 0

        def add(self, request: Any) -> None:
            self.added += 1
            if self.added == 3:
                raise InvalidRequest("the engine refuses the request")
            super().add(request)

    admission = Drain(8, "generations")
    engine = RefusesThird(Shape(), iter_ones, 0.001)
    loads: list[Load] = []
    metrics = EngineMetrics(CollectorRegistry()).of_model("m")
    sink = RecordingSink()
    async with asyncio.TaskGroup() as group:
        generations = Generations(engine, admission, metrics, loads.append, group)
        running = group.create_task(engine.run(generations.on_step))
        with pytest.raises(InvalidRequest):
            generations.start(GenerationSpec("r", [1, 2], ENDLESS, n=4), sink)
        assert admission.active == 0
        await asyncio.sleep(0.02)
        assert sink.events == [] and loads[-1] == Load(0, 0, 0.0)
        running.cancel()


def iter_ones(request: Any) -> Any:
    """A script of ones."""
    while True:
        yield 1


async def test_equal_request_ids_live_side_by_side() -> None:
    """Callers' ids need not be unique: two generations of one id get each their own tokens."""
    async with served() as it:
        first = it.start(Sampling(max_tokens=5, ignore_eos=True), prompt_token_ids=[1, 2, 3])
        second = it.start(Sampling(max_tokens=5, ignore_eos=True), prompt_token_ids=[4, 5, 6])
        await first.until("finished")
        await second.until("finished")
        assert first.token_ids != second.token_ids


async def test_invalid_requests_take_nothing() -> None:
    """A request that does not fit the model is refused before it takes a place or reaches the engine."""
    async with served() as it:
        refusals: list[Callable[[], RecordingSink]] = [
            lambda: it.start(prompt_token_ids=[]),
            lambda: it.start(prompt_token_ids=[49152]),
            lambda: it.start(n=0),
            lambda: it.start(Sampling(max_tokens=4096)),
        ]
        for refused in refusals:
            with pytest.raises(ServiceError):
                refused()
        assert it.admission.active == 0 and it.loads == []
