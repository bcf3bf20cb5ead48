"""Prompts that are cut to fit, as part of a generation over a recording engine side."""

from __future__ import annotations

import asyncio
import time

import pytest
import structlog

from services.chassis.errors import DeadlineExceeded, InternalError, InvalidRequest, Unavailable
from services.tokenizer.context_policy import ContextPolicy, ContextPolicyKind
from services.tokenizer.events import ContextReport, Finish, FinishReason, Usage
from services.tokenizer.generation import TextGeneration
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.text_model import TextModel
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf
from tests.tokenizer.context.histories import Message, chat_of, said, tokens
from tests.tokenizer.recorded_streams import DONE, Asked, Setup

pytestmark = pytest.mark.timeout(30)

CONTEXT = 400
ROOM = 100


@pytest.fixture(scope="module")
def model(tokenizer_of: TokenizerOf) -> TextModel:
    """The default model with a short context."""
    return TextModel("m", tokenizer_of(SMOLLM2), context_length=CONTEXT)


@pytest.fixture
def setup(model: TextModel) -> Setup:
    """A generator of its own."""
    return Setup(model)


def talk(turns: int) -> list[Message]:
    """So many turns of 60 tokens, and a last question."""
    messages = [said(role, f"number {turn} " + "word " * 20) for turn in range(turns) for role in ("user", "assistant")]
    return [*messages, said("user", "Well?")]


def chat(kind: ContextPolicyKind, turns: int = 12) -> ChatPrompt:
    """A conversation; the default is twice as long as the context."""
    return chat_of(talk(turns), policy=ContextPolicy(kind))


async def summarizing(setup: Setup, **changes: object) -> tuple[TextGeneration[Asked], asyncio.Task[None]]:
    """A generation whose summary has been asked for, and the task that runs it up."""
    generation = setup.admit(
        chat(ContextPolicyKind.SUMMARIZE, turns=6),
        max_tokens=ROOM,
        summary_request=lambda ids, most_tokens, seconds: (ids, -most_tokens, seconds),
        **changes,
    )
    running = asyncio.create_task(generation.run_up())
    await asyncio.sleep(0)
    assert len(setup.streams.sinks) == 1
    return generation, running


async def test_what_does_not_fit_is_refused_without_a_policy(setup: Setup) -> None:
    """As ever: both figures, and no stream."""
    generation = setup.admit(chat(ContextPolicyKind.ERROR), max_tokens=ROOM)
    await generation.run_up()
    assert isinstance(setup.sink.error, InvalidRequest)
    whole = tokens(talk(12), setup.model.tokenizer)
    assert f"the prompt has {whole} tokens, but the context of {CONTEXT} tokens" in str(setup.sink.error)
    assert (setup.sink.error.reason, setup.streams.sinks) == ("CONTEXT_LENGTH_EXCEEDED", [])


@pytest.mark.parametrize(("max_tokens", "room"), [(ROOM, ROOM), (1, 1), (None, CONTEXT // 4)])
async def test_a_window_leaves_room_for_the_answer(setup: Setup, max_tokens: int | None, room: int) -> None:
    """Each choice's prompt is the cut one, it leaves the tokens that the request or the share asks for, and the start
    tells what was left out, once; so does one log line."""
    generation = setup.admit(chat(ContextPolicyKind.SLIDING_WINDOW), n=2, max_tokens=max_tokens)
    with structlog.testing.capture_logs() as lines:
        await generation.run_up()
    (ids, _, _), (same, _, _) = setup.streams.asked
    assert ids == same
    assert CONTEXT - room - 160 < len(ids) <= CONTEXT - room
    for sink in setup.streams.sinks:
        sink.started(len(ids), 0)
    assert setup.sink.prompt is not None
    report = setup.sink.prompt.context
    assert report is not None
    left_out = tokens(talk(12), setup.model.tokenizer) - len(ids)
    assert report == ContextReport(ContextPolicyKind.SLIDING_WINDOW, report.dropped_messages, left_out)
    assert ids == chat_of(talk(12)[report.dropped_messages :]).token_ids(setup.model.tokenizer)
    (line,) = [line for line in lines if line["event"] == "conversation cut to fit"]
    assert (line["request_id"], line["policy"], line["dropped_tokens"]) == ("r-1", "sliding_window", left_out)
    assert setup.metric("streamomni:text_prompt_tokens_total") == len(ids)


async def test_what_fits_is_left_alone(setup: Setup) -> None:
    """With a policy and nothing to leave out the prompt is the same as without, and nothing is told."""
    for kind in ContextPolicyKind:
        await setup.admit(chat(kind, turns=3), max_tokens=ROOM).run_up()
    assert len({tuple(ids) for ids, _, _ in setup.streams.asked}) == 1
    setup.streams.sinks[0].started(9, 0)
    assert setup.sink.prompt is None


async def test_too_long_to_cut(setup: Setup) -> None:
    """Where the last turn leaves no room beside the answer, both figures are told."""
    await setup.admit(chat(ContextPolicyKind.SLIDING_WINDOW), max_tokens=CONTEXT - 10).run_up()
    least = tokens(talk(0), setup.model.tokenizer)
    assert "leaves 10 tokens for the prompt beside the answer" in str(setup.sink.error)
    assert f"the last turn alone have {least} tokens" in str(setup.sink.error)
    assert setup.sink.error.reason == "CONTEXT_LENGTH_EXCEEDED"


async def test_a_summary_comes_before_the_answer(setup: Setup) -> None:
    """The engine is asked for a summary first, greedily and within its bound; then for the answer to a prompt that
    holds it. The start tells it with what it took, and one place is taken all the time."""
    generation, running = await summarizing(setup)
    tokenizer = setup.model.tokenizer
    question, most_tokens, seconds = setup.streams.asked[0]
    assert (most_tokens, seconds) == (-((CONTEXT - ROOM) // 8), None)
    assert "Summarize our conversation" in tokenizer.decode(question)
    assert (setup.sink.events, setup.admission.active) == ([], 1)
    sink = setup.streams.sinks[0]
    sink.started(len(question), 12)
    ids = tokenizer.encode("They met.", False)
    sink.delta(ids, False)
    sink.finished(Finish(FinishReason.STOP, None, Usage(0, 0, 0)))
    await running
    prompt = setup.streams.asked[1][0]
    assert "conversation:\nThey met." in tokenizer.decode(prompt)
    assert len(prompt) <= CONTEXT - ROOM
    setup.streams.sinks[1].started(len(prompt), 0)
    setup.streams.sinks[1].finished(DONE)
    assert setup.sink.prompt is not None
    report = setup.sink.prompt.context
    assert report is not None
    assert (report.summary, report.summary_usage) == ("They met.", Usage(len(question), len(ids), 12))
    assert (generation.over, setup.admission.active, setup.streams.cancelled) == (True, 0, [])
    assert setup.metric("streamomni:text_tokens_total") == len(ids)


async def test_cancelling_ends_the_summary_at_the_engine(setup: Setup) -> None:
    """At once; nothing is told, no further stream begins, and the place is free."""
    generation, running = await summarizing(setup)
    setup.streams.sinks[0].started(300, 0)
    generation.cancel()
    assert (setup.streams.cancelled, setup.admission.active) == ([0], 0)
    with structlog.testing.capture_logs() as lines:
        await running
    assert lines == []
    assert (len(setup.streams.sinks), setup.sink.events) == (1, [])


async def test_a_reader_who_leaves_ends_the_summary(setup: Setup) -> None:
    """The task that runs a generation up is cancelled with its call: then the stream is cancelled too."""
    _, running = await summarizing(setup)
    running.cancel()
    await asyncio.wait([running])
    assert (setup.streams.cancelled, running.cancelled()) == ([0], True)


async def test_the_deadline_holds_for_the_summary(setup: Setup) -> None:
    """It is told to the engine, and when it passes, the summary's stream is cancelled and the error told once."""
    begin = time.monotonic()
    _, running = await summarizing(setup, deadline_seconds=0.2)
    seconds = setup.streams.asked[0][2]
    assert seconds is not None and 0 < seconds <= 0.2
    await running
    assert 0.15 < time.monotonic() - begin < 5
    assert isinstance(setup.sink.error, DeadlineExceeded)
    assert (setup.streams.cancelled, len(setup.streams.sinks), setup.admission.active) == ([0], 1, 0)


async def test_a_summary_that_fails_fails_the_generation(setup: Setup) -> None:
    """The engine's error is the generation's, and no answer begins; so it is where the engine cannot be asked."""
    _, running = await summarizing(setup)
    setup.streams.sinks[0].failed(InternalError())
    await running
    assert isinstance(setup.sink.error, InternalError)
    assert (len(setup.streams.sinks), setup.admission.active) == (1, 0)
    away = Setup(setup.model)
    away.streams.room = 0
    await away.admit(
        chat(ContextPolicyKind.SUMMARIZE, turns=6),
        max_tokens=ROOM,
        summary_request=lambda ids, most, seconds: (ids, most, seconds),
    ).run_up()
    assert isinstance(away.sink.error, Unavailable)
    assert away.admission.active == 0


async def test_a_large_conversation_is_cut_in_a_thread(setup: Setup) -> None:
    """The loop goes on while half a megabyte is rendered, encoded and cut."""
    large = chat(ContextPolicyKind.SLIDING_WINDOW, turns=1000)
    running = asyncio.create_task(setup.admit(large, max_tokens=ROOM).run_up())
    turns = 0
    while not running.done():
        await asyncio.sleep(0)
        turns += 1
    # Done on the loop it takes but one.
    assert turns > 3
    assert len(setup.streams.asked[0][0]) <= CONTEXT - ROOM
