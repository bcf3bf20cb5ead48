"""A summary's stream at the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from services.chassis.errors import InternalError, Unavailable
from services.tokenizer.choice import ChoiceReader
from services.tokenizer.context.summary_stream import NOTHING, SummaryStream, Written
from services.tokenizer.events import EngineSink, Finish, FinishReason, Usage
from services.tokenizer.findings import Findings
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import OutputStage
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf

USAGE = Usage(30, 5, 16)
END = Finish(FinishReason.LENGTH, None, USAGE)


@pytest.fixture(scope="module")
def tokenizer(tokenizer_of: TokenizerOf) -> TextTokenizer:
    """The default model's."""
    return tokenizer_of(SMOLLM2)


class Engine:
    """Keeps the one stream that is started, and whether it was cancelled."""

    sink: EngineSink
    cancelled = 0

    def start(self, sink: EngineSink) -> Callable[[], None]:
        """Begin it."""
        self.sink = sink
        return self._cancel

    def _cancel(self) -> None:
        self.cancelled += 1


async def test_the_text_and_what_it_took(tokenizer: TextTokenizer) -> None:
    """The deltas' text without white space around it, and the counts of this tier; an ended stream is not cancelled."""
    engine, stream = Engine(), SummaryStream(tokenizer, [500])
    stream.start(engine.start)
    engine.sink.started(30, 16)
    ids = tokenizer.encode(" They met in Nantes.\n", False)
    for token_id in ids:
        engine.sink.delta([token_id], False)
    engine.sink.finished(END)
    assert await stream.written() == Written("They met in Nantes.", Usage(30, len(ids), 16))
    stream.cancel()
    assert engine.cancelled == 0


async def test_reasoning_is_no_summary(tokenizer_of: TokenizerOf) -> None:
    """What a model thinks before it answers is left out and counted."""
    tokenizer = tokenizer_of("qwen3")
    engine, stream = Engine(), SummaryStream(tokenizer, [500])
    stream.start(engine.start)
    engine.sink.started(30, 0)
    engine.sink.delta(tokenizer.encode("<think>\nLong?\n</think>\n\nThey met.", False), False)
    engine.sink.finished(END)
    written = await stream.written()
    assert written.text == "They met."
    assert written.usage.reasoning_tokens > 0


async def test_cancelling_ends_it_at_the_engine(tokenizer: TextTokenizer) -> None:
    """At once, once, and its reader gets nothing; what is still under way changes nothing."""
    engine, stream = Engine(), SummaryStream(tokenizer, [500])
    stream.start(engine.start)
    waiting = asyncio.ensure_future(stream.written())
    engine.sink.started(30, 16)
    stream.cancel()
    stream.cancel()
    assert await waiting == NOTHING
    assert engine.cancelled == 1
    engine.sink.delta(tokenizer.encode("late", False), False)
    engine.sink.finished(END)
    assert await stream.written() == NOTHING


async def test_failures_are_told(tokenizer: TextTokenizer) -> None:
    """A stream that fails, and an engine that cannot be asked, are errors and no empty summary."""
    engine, stream = Engine(), SummaryStream(tokenizer, [500])
    stream.start(engine.start)
    engine.sink.failed(InternalError())
    with pytest.raises(InternalError):
        await stream.written()

    def away(sink: EngineSink) -> Callable[[], None]:
        raise Unavailable("no connection to the engine; try again")

    with pytest.raises(Unavailable):
        SummaryStream(tokenizer, [500]).start(away)


class EndsAt(OutputStage):
    """A filter that ends a choice where a word comes."""

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: object = None
    ) -> None:
        """Pass on what is before the word."""
        if "secret" in text:
            self.end(FinishReason.CONTENT_FILTER)
        else:
            super().choice_delta(index, token_ids, text, logprobs)


async def test_filters_hold_for_summaries(tokenizer: TextTokenizer) -> None:
    """A summary goes through the output filters: what one stops is cancelled at the engine and never told."""

    def new_stage(index: int, reader: ChoiceReader, findings: Findings) -> OutputStage:
        return EndsAt(index, reader, findings)

    engine, stream = Engine(), SummaryStream(tokenizer, [500], [new_stage])
    stream.start(engine.start)
    engine.sink.started(30, 16)
    engine.sink.delta(tokenizer.encode("They met.", False), False)
    engine.sink.delta(tokenizer.encode(" The secret is", False), False)
    assert (await stream.written()).text == "They met."
    assert engine.cancelled == 1
