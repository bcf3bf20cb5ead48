"""How generations end before their time: cancelled or overdue, in every phase."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.chassis.errors import DeadlineExceeded, InternalError, Unavailable
from services.tokenizer.generation import TextGeneration
from services.tokenizer.prompt import TokenPrompt
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.recorded_streams import DONE, Asked, Blocked, Setup


@pytest.fixture(scope="module")
def model(tokenizer_of: TokenizerOf) -> TextModel:
    """The default model with a short context."""
    return TextModel("m", tokenizer_of(SMOLLM2), context_length=100)


@pytest.fixture
def setup(model: TextModel) -> Setup:
    """A generator of its own."""
    return Setup(model)


async def test_cancel_before_run_up(setup: Setup) -> None:
    """What is cancelled before it began is neither encoded nor started, and nothing is told."""
    generation = setup.admit(n=2)
    generation.cancel()
    await generation.run_up()
    assert (setup.streams.sinks, setup.sink.events, setup.admission.active) == ([], [], 0)
    assert setup.metric("streamomni:text_encode_seconds_count") == 0
    assert setup.metric("streamomni:text_generations_cancelled_total") == 1


async def test_cancel_while_a_thread_encodes(setup: Setup) -> None:
    """The place is free at once, and nothing starts when the thread is done."""
    prompt = Blocked()
    generation = setup.admit(prompt)
    running = asyncio.create_task(generation.run_up())
    await asyncio.to_thread(prompt.entered.wait, 10)
    generation.cancel()
    assert setup.admission.active == 0
    prompt.release.set()
    await running
    assert (setup.streams.sinks, setup.sink.events) == ([], [])


async def test_cancel_while_decoding(setup: Setup, model: TextModel) -> None:
    """All streams are cancelled, and what is still under way is not passed on."""
    generation = await setup.begin(n=2)
    for sink in setup.streams.sinks:
        sink.started(1, 0)
        sink.delta(model.tokenizer.encode("go", False), False)
    generation.cancel()
    assert (setup.streams.cancelled, setup.admission.active) == ([0, 1], 0)
    told = list(setup.sink.events)
    setup.streams.sinks[0].delta(model.tokenizer.encode(" on", False), False)
    setup.streams.sinks[0].finished(DONE)
    setup.streams.sinks[1].failed(InternalError())
    generation.cancel()
    assert (setup.sink.events, setup.streams.cancelled, setup.admission.active) == (told, [0, 1], 0)
    assert setup.metric("streamomni:text_generations_cancelled_total") == 1


async def test_the_deadline_passes_while_a_thread_encodes(setup: Setup) -> None:
    """The error comes at the deadline, not when the thread is done, and `run_up` returns with it."""
    prompt = Blocked()
    generation = setup.admit(prompt, deadline_seconds=0.05)
    async with asyncio.timeout(5):
        await generation.run_up()
    assert not prompt.release.is_set()
    assert isinstance(setup.sink.error, DeadlineExceeded)
    assert setup.admission.active == 0
    prompt.release.set()
    assert setup.streams.sinks == []


@pytest.mark.parametrize("started", [False, True], ids=["queued", "decoding"])
async def test_the_deadline_passes_at_the_engine(setup: Setup, started: bool) -> None:
    """While queued and while decoding: one error, the streams are cancelled, and nothing follows."""
    await setup.begin(n=2, deadline_seconds=0.05)
    assert all(seconds is not None and 0 < seconds <= 0.05 for _, _, seconds in setup.streams.asked)
    if started:
        setup.streams.sinks[0].started(1, 0)
    await asyncio.sleep(0.1)
    assert isinstance(setup.sink.error, DeadlineExceeded)
    assert (setup.streams.cancelled, setup.admission.active) == ([0, 1], 0)
    setup.streams.sinks[0].failed(DeadlineExceeded("the engine's own"))
    assert len(setup.sink.of("failed")) == 1


async def test_no_time_at_all(setup: Setup) -> None:
    """A deadline of 0 ends the generation before the engine could give a token."""
    await setup.begin(deadline_seconds=0.0)
    await asyncio.sleep(0.01)
    assert isinstance(setup.sink.error, DeadlineExceeded)
    assert setup.admission.active == 0


async def test_a_finished_generation_has_no_deadline_left(setup: Setup) -> None:
    """The deadline of what has ended tells nothing."""
    await setup.begin(deadline_seconds=0.05)
    setup.streams.sinks[0].finished(DONE)
    await asyncio.sleep(0.1)
    assert setup.sink.of("failed") == []


_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["start", "text", "stop text", "finish", "fail", "cancel", "lose", "tick", "run up"]),
        st.integers(0, 5),
    ),
    max_size=25,
)


@settings(max_examples=200, deadline=None)
@given(_OPERATIONS, st.integers(1, 4), st.integers(0, 5), st.booleans())
def test_places_are_given_back_exactly(
    model: TextModel, operations: list[tuple[str, int]], n: int, room: int, hurried: bool
) -> None:
    """After any sequence of events no place is taken, and each choice ended once or the whole failed or was
    cancelled; nothing follows an end."""

    async def run(setup: Setup) -> None:
        setup.streams.room = room
        generation = setup.admit(
            n=n, stops=StopStrings(["stop"]), deadline_seconds=0.0 if hurried else 100.0, prompt=TokenPrompt([500])
        )
        alive: set[int] = set()
        for operation, index in [*operations, ("run up", 0)]:
            if operation == "run up" and not setup.streams.asked and not setup.sink.of("failed"):
                await generation.run_up()
                alive = set(range(len(setup.streams.sinks)))
            # The link gives nothing to a stream that ended or that it was told to cancel.
            alive -= set(setup.streams.cancelled)
            _apply(operation, index, setup, generation, alive, model.tokenizer)
            if operation == "tick":
                await asyncio.sleep(0)
            expected = 0 if generation.over else n - len(setup.sink.of("finished"))
            assert setup.admission.active == expected
        ends = {event[1] for event in setup.sink.of("finished")}
        assert len(ends) == len(setup.sink.of("finished"))
        assert len(setup.sink.of("failed")) <= 1
        assert not (setup.sink.of("failed") and len(ends) == n)
        generation.cancel()
        assert setup.admission.active == 0
        assert await setup.admission.drain(0)
        # Every stream that was begun has ended by itself or was cancelled, once.
        assert len(setup.streams.cancelled) == len(set(setup.streams.cancelled))

    asyncio.run(run(Setup(model)))


def _apply(
    operation: str,
    index: int,
    setup: Setup,
    generation: TextGeneration[Asked],
    alive: set[int],
    tokenizer: TextTokenizer,
) -> None:
    if operation == "cancel":
        generation.cancel()
    elif operation == "lose":
        for number in sorted(alive):
            alive.discard(number)
            setup.streams.sinks[number].failed(Unavailable("the link was lost"))
    elif index in alive:
        sink = setup.streams.sinks[index]
        if operation == "start":
            sink.started(1, 0)
        elif operation == "text":
            sink.delta(tokenizer.encode("go on", False), False)
        elif operation == "stop text":
            sink.delta(tokenizer.encode(" stop it", False), False)
        elif operation == "finish":
            alive.discard(index)
            sink.finished(DONE)
        elif operation == "fail":
            alive.discard(index)
            sink.failed(InternalError())
