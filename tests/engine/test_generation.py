from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from services.chassis.drain import Drain
from services.chassis.errors import (
    DeadlineExceeded,
    Draining,
    InternalError,
    InvalidRequest,
    Overloaded,
    ServiceError,
    Unavailable,
)
from services.engine.generation import Generation, Generations, Usage
from services.engine.metrics import EngineMetrics
from services.engine.port import Finish, FinishReason, Load, Output, Prefilled, Sampling, Step
from services.engine.validation import GenerationSpec
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
        async with asyncio.timeout(1.0):
            while not self.loads or self.loads[-1] != Load(0, 0, 0.0):
                await asyncio.sleep(0.005)


@asynccontextmanager
async def served(tick: float = 0.001, limit: int = 16, shape: Shape | None = None) -> AsyncGenerator[Served, None]:
    """Generations on a running scripted engine."""
    loader = ScriptedLoader(Path(), shape=shape or Shape(), tick_seconds=tick)
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry).of_model("m")
    admission = Drain(limit, "generations")
    loads: list[Load] = []
    async with loader.load() as engine, asyncio.TaskGroup() as group:
        generations = Generations(engine, admission, metrics, loads.append)
        running = group.create_task(engine.run(generations.on_step))
        yield Served(loader.engine, admission, generations, registry, loads)
        running.cancel()


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


@pytest.mark.parametrize("phase", ["at once", "queued", "after the first token", "hung"])
async def test_cancel_in_each_phase(phase: str) -> None:
    """A cancelled generation gets no further event, its places are free at once, and so is the engine within 1 s."""
    async with served(shape=Shape(max_num_seqs=2)) as it:
        others = [it.start(), it.start()] if phase == "queued" else []
        if phase == "hung":
            it.engine.hang()
        sink = it.start(n=2)
        cancelled = it.generation
        assert cancelled is not None
        if phase == "after the first token":
            await sink.until("delta", 2)
        elif phase != "at once":
            await asyncio.sleep(0.02)
        assert it.admission.active == 2 + len(others)
        cancelled.cancel()
        cancelled.cancel()
        assert it.admission.active == len(others)
        events = list(sink.events)
        it.engine.resume()
        await asyncio.sleep(0.03)
        assert sink.events == events
        assert "finished" not in events and "failed" not in events
        assert it.count("streamomni:generations_cancelled_total") == 1
        it.generations.fail_all(Unavailable("over"))
        await it.assert_idle()


async def test_deadline_fails_it_and_frees_it() -> None:
    """When its time is over a generation fails once with DeadlineExceeded, and its places and the engine are free."""
    async with served() as it:
        sink = it.start(n=3, deadline_seconds=0.05)
        await sink.until("failed")
        assert isinstance(sink.error, DeadlineExceeded)
        await it.assert_idle()
        await asyncio.sleep(0.02)
        assert sink.events[-1] == "failed" and "finished" not in sink.events


async def test_deadline_of_an_ended_generation_is_forgotten() -> None:
    """A generation that ended or was cancelled in time gets nothing from its deadline."""
    async with served() as it:
        ended = it.start(Sampling(max_tokens=1, ignore_eos=True), deadline_seconds=0.05)
        cancelled = it.start(deadline_seconds=0.05)
        assert it.generation is not None
        it.generation.cancel()
        await ended.until("finished")
        await asyncio.sleep(0.1)
        assert ended.error is None and cancelled.error is None


async def test_endless_deadline_is_none() -> None:
    """The longest deadline that a request can name is as good as none."""
    async with served() as it:
        sink = it.start(Sampling(max_tokens=3, ignore_eos=True), deadline_seconds=(2**64 - 1) / 1000)
        await sink.until("finished")


async def test_fail_all_tells_each_generation_once() -> None:
    """All live generations fail once with the error, whatever their number of choices, and all places are free."""
    async with served() as it:
        sinks = [it.start(n=n) for n in (1, 2, 3)]
        await sinks[0].until("delta")
        error = Unavailable("the engine ended")
        it.generations.fail_all(error)
        assert [sink.error for sink in sinks] == [error] * 3
        assert [sink.events.count("failed") for sink in sinks] == [1] * 3
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


@pytest.mark.parametrize("event", ["started", "delta"])
async def test_sink_may_cancel_inside_an_event(event: str) -> None:
    """A sink that cancels its generation within an event gets no further one, not even from the same step."""
    async with served() as it:

        def cancel_at(seen: str) -> None:
            if seen == event and it.generation is not None:
                it.generation.cancel()

        # Ends with its first token, so that the same output brings the finish.
        sink = it.start(Sampling(max_tokens=1, ignore_eos=True), RecordingSink(cancel_at))
        await sink.until(event)
        await it.assert_idle()
        assert sink.events == ["started", "delta"][: ["started", "delta"].index(event) + 1]
        assert it.count("streamomni:generations_cancelled_total") == 1
        assert it.count("vllm:request_success_total", finished_reason="length") == 0


async def test_cancel_inside_the_last_finish_is_nothing() -> None:
    """A generation is over when its last finish is told: cancelling it there neither counts nor gives places twice."""
    async with served() as it:

        def cancel_at(seen: str) -> None:
            if seen == "finished" and it.generation is not None:
                it.generation.cancel()

        sink = it.start(Sampling(max_tokens=2, ignore_eos=True), RecordingSink(cancel_at))
        await sink.until("finished")
        assert it.count("streamomni:generations_cancelled_total") == 0
        await it.assert_idle()


async def test_cancel_inside_the_first_finish_ends_the_other_choices() -> None:
    """Cancelling within one choice's finish ends the others without an event, and every place is given back once."""
    async with served() as it:

        def cancel_at(seen: str) -> None:
            if seen == "finished" and it.generation is not None:
                it.generation.cancel()

        sink = it.start(Sampling(max_tokens=2, ignore_eos=True), RecordingSink(cancel_at), n=3)
        await sink.until("finished")
        await it.assert_idle()
        assert len(sink.finishes) == 1


async def test_late_output_is_dropped() -> None:
    """Output of a generation that is over, and of one that never was, reaches nobody and harms nothing."""
    async with served() as it:
        sink = it.start(Sampling(max_tokens=50, ignore_eos=True))
        await sink.until("delta")
        assert it.generation is not None
        request_id = it.generation.choices[0].request_id
        it.generation.cancel()
        events = list(sink.events)
        late = Output(request_id, [1], Prefilled(0), finish=Finish(FinishReason.LENGTH))
        it.generations.on_step(Step([late, Output("never-was", [1])], None))
        assert sink.events == events
        assert it.admission.active == 0


async def test_given_up_request_fails_alone() -> None:
    """A request that the engine gives up fails its whole generation with a fixed text, and no other."""
    async with served() as it:
        other = it.start()
        sink = it.start(n=2)
        assert it.generation is not None
        it.generations.on_step(Step([Output(it.generation.choices[1].request_id, [], failed=True)], None))
        assert isinstance(sink.error, InternalError)
        assert other.error is None and it.admission.active == 1
        it.generations.fail_all(Unavailable("over"))
        await it.assert_idle()


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
    generations = Generations(engine, admission, metrics, loads.append)
    sink = RecordingSink()
    async with asyncio.TaskGroup() as group:
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


async def test_many_at_once_end_exactly_once() -> None:
    """Of hundreds of generations, cancelled at random moments, each has one end at most and every place comes back."""
    async with served(tick=0.0, limit=500) as it:
        sinks, generations = [], []
        for number in range(200):
            sinks.append(it.start(Sampling(max_tokens=1 + number % 40, ignore_eos=True), n=1 + number % 2))
            assert it.generation is not None
            generations.append(it.generation)
        for number, generation in enumerate(generations):
            if number % 3 == 0:
                await asyncio.sleep(0)
                generation.cancel()
        async with asyncio.timeout(5.0):
            while it.admission.active:
                await asyncio.sleep(0.005)
        await it.assert_idle()
        for number, sink in enumerate(sinks):
            if number % 3:
                assert len(sink.finishes) == 1 + number % 2
            assert sink.error is None
