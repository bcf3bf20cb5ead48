"""Generations: admission, their events, and what makes them fail, over a recording engine side."""

from __future__ import annotations

import pytest
import structlog

from services.chassis.errors import InternalError, InvalidRequest, NotFound, Overloaded, Unavailable
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.prompt import TextPrompt, TokenPrompt
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_model import TextModel
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.recorded_streams import DONE, Broken, Setup


@pytest.fixture(scope="module")
def model(tokenizer_of: TokenizerOf) -> TextModel:
    """The default model with a short context."""
    return TextModel("m", tokenizer_of(SMOLLM2), context_length=100)


@pytest.fixture
def setup(model: TextModel) -> Setup:
    """A generator of its own."""
    return Setup(model)


async def test_a_generation_from_start_to_finish(setup: Setup, model: TextModel) -> None:
    """Started once with the model's name, deltas, one finish; its place is taken until then."""
    generation = await setup.begin()
    (sink,) = setup.streams.sinks
    assert setup.streams.asked == [([500], 0, None)]
    assert setup.admission.active == 1
    sink.started(1, 0)
    sink.delta(model.tokenizer.encode("Hi", False), False)
    sink.finished(DONE)
    assert [event[0] for event in setup.sink.events] == ["started", "delta", "finished"]
    assert setup.sink.events[0] == ("started", "m", 1, 0)
    assert (generation.over, setup.admission.active, setup.streams.cancelled) == (True, 0, [])
    generation.cancel()
    assert setup.metric("streamomni:text_generations_cancelled_total") == 0
    assert setup.metric("streamomni:text_tokens_total") == 1
    assert setup.metric("streamomni:text_prompt_tokens_total") == 1


async def test_a_stop_string_ends_one_choice_alone(setup: Setup, model: TextModel) -> None:
    """The choice whose stop string came is cancelled at the engine at once, the others go on; Started comes
    once."""
    await setup.begin(n=3, stops=StopStrings(["stop"]))
    assert [index for _, index, _ in setup.streams.asked] == [0, 1, 2]
    for sink in setup.streams.sinks:
        sink.started(1, 0)
        sink.delta(model.tokenizer.encode("go", False), False)
    setup.streams.sinks[1].delta(model.tokenizer.encode(" stop", False), False)
    assert setup.streams.cancelled == [1]
    assert setup.admission.active == 2
    assert setup.sink.of("finished") == [("finished", 1, Finish(FinishReason.STOP, "stop", Usage(1, 2, 0)))]
    for index in (0, 2):
        setup.streams.sinks[index].finished(DONE)
    assert len(setup.sink.of("started")) == 1
    assert [event[1] for event in setup.sink.of("finished")] == [1, 0, 2]
    assert (setup.streams.cancelled, setup.admission.active) == ([1], 0)


@pytest.mark.parametrize("n", [0, 129, 2**32 - 1])
async def test_an_impossible_number_of_choices_is_refused(setup: Setup, n: int) -> None:
    """n outside 1 to 128 takes no place."""
    with pytest.raises(InvalidRequest, match=f"n is {n}; allowed are 1 to 128") as caught:
        setup.admit(n=n)
    assert (caught.value.param, setup.admission.active) == ("n", 0)


async def test_refusals_take_no_place(setup: Setup) -> None:
    """An unknown model, and more choices than places are left, change nothing; exactly as many as are left pass."""
    with pytest.raises(NotFound):
        setup.admit(model="other")
    first = setup.admit(n=6)
    with pytest.raises(Overloaded, match="6 generations are under way and 8 are allowed"):
        setup.admit(n=3)
    assert setup.admission.active == 6
    setup.admit(n=2).cancel()
    first.cancel()
    assert setup.admission.active == 0


async def test_the_engine_is_away(setup: Setup) -> None:
    """Where the third of four streams cannot start, the two are cancelled and one error is told."""
    setup.streams.room = 2
    await setup.begin(n=4)
    assert isinstance(setup.sink.error, Unavailable)
    assert (setup.streams.cancelled, setup.admission.active) == ([0, 1], 0)


async def test_a_choice_that_fails_ends_all(setup: Setup) -> None:
    """One failure ends the generation: the others are cancelled, those that ended stay ended."""
    await setup.begin(n=3)
    setup.streams.sinks[0].finished(DONE)
    setup.streams.sinks[1].failed(Unavailable("gone", reason="ENGINE_FAILED"))
    assert setup.sink.error.reason == "ENGINE_FAILED"
    assert (setup.streams.cancelled, setup.admission.active) == ([2], 0)


async def test_a_text_far_beyond_the_context_is_not_encoded(setup: Setup) -> None:
    """Megabytes of text are refused by their length, since their ids would be millions."""
    await setup.begin(prompt=TextPrompt("word " * 100_000, True))
    assert isinstance(setup.sink.error, InvalidRequest)
    assert setup.sink.error.reason == "CONTEXT_LENGTH_EXCEEDED"
    assert "at least" in setup.sink.error.message and "100 tokens" in setup.sink.error.message


@pytest.mark.parametrize("tokens", [100, 5000])
async def test_a_prompt_beyond_the_context_does_not_reach_the_engine(setup: Setup, tokens: int) -> None:
    """Refused with both figures before a message is made for each choice; one token less is served."""
    await setup.begin(n=8, prompt=TokenPrompt([500] * tokens))
    assert isinstance(setup.sink.error, InvalidRequest)
    assert setup.sink.error.reason == "CONTEXT_LENGTH_EXCEEDED"
    assert f"{tokens} tokens" in setup.sink.error.message and "100 tokens" in setup.sink.error.message
    assert (setup.streams.asked, setup.admission.active) == ([], 0)


async def test_a_prompt_that_just_fits_is_served(setup: Setup) -> None:
    """The prompt may leave room for one token."""
    generation = await setup.begin(prompt=TokenPrompt([500] * 99))
    assert len(setup.streams.asked) == 1
    generation.cancel()


async def test_an_unknown_fault_is_told_without_its_text(setup: Setup) -> None:
    """What is no error of ours becomes INTERNAL; the traceback is logged once, with the request's id."""
    with structlog.testing.capture_logs() as lines:
        await setup.begin(prompt=Broken())
    assert isinstance(setup.sink.error, InternalError)
    assert "secret" not in setup.sink.error.message
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert (line["request_id"], line["event"]) == ("r-1", "generation failed to start")
    assert setup.admission.active == 0


async def test_each_line_of_a_generation_has_its_id_and_no_text(setup: Setup) -> None:
    """Start and end are logged with the request's id, counts and outcome, never with text."""
    with structlog.testing.capture_logs() as lines:
        await setup.begin(prompt=TextPrompt("a secret", True), stops=StopStrings(["secret"]))
        setup.streams.sinks[0].started(2, 0)
        setup.streams.sinks[0].delta(setup.model.tokenizer.encode("my secret", False), False)
    assert [(line["event"], line["request_id"]) for line in lines] == [
        ("generation started", "r-1"),
        ("generation ended", "r-1"),
    ]
    assert (lines[1]["outcome"], lines[1]["completion_tokens"]) == ("stop", 2)
    assert "secret" not in str(lines)
