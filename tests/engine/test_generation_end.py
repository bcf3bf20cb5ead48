"""How generations end: cancelled, late, failed, or in the midst of an event."""

from __future__ import annotations

import asyncio

import pytest

from services.chassis.errors import (
    DeadlineExceeded,
    InternalError,
    Unavailable,
)
from services.engine.port import Finish, FinishReason, Output, Prefilled, Sampling, Step
from tests.chassis.waiting import until
from tests.engine.recording_sink import RecordingSink
from tests.engine.served_generations import served
from tests.fakes.scripted_engine import Shape


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
        await until(lambda: it.admission.active == 0)
        await it.assert_idle()
        for number, sink in enumerate(sinks):
            if number % 3:
                assert len(sink.finishes) == 1 + number % 2
            assert sink.error is None
