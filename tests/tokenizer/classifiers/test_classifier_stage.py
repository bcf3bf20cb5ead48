"""Judged choices: what is asked when, what a verdict does, and that a failing classifier ends the stream."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable

import pytest
import structlog

from services.chassis.errors import Unavailable
from services.tokenizer.classifiers.classifier_stage import judged_by
from services.tokenizer.classifiers.judging import Judging
from services.tokenizer.classifiers.port import Verdict
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.findings import FilterAction, FilterMatch, Findings
from services.tokenizer.output_stage import OutputStage
from tests.tokenizer.choice_recorder import Recorder
from tests.tokenizer.engine_fixtures import until
from tests.tokenizer.filters.test_filter_stage import Asked

END = Finish(FinishReason.STOP, None, Usage(9, 5, 4))
STOPS, REPORTS = Verdict(FilterAction.STOP, "bad"), Verdict(FilterAction.REPORT, "odd")


class Judge:
    """A classifier that keeps what it is asked, and answers by a word of it, once it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def judge(self, text: str) -> Verdict | None:
        """Judge by words."""
        self.asked.append(text)
        self.may_answer.wait(5)
        if "break" in text:
            raise ValueError(f"secret: {text}")
        return STOPS if "bad" in text else REPORTS if "odd" in text else None


NewStage = Callable[[], tuple[OutputStage, Recorder, Asked]]


@pytest.fixture
def judge() -> Judge:
    """A classifier."""
    return Judge()


@pytest.fixture
async def new_stage(judge: Judge) -> AsyncIterator[NewStage]:
    """Makes stages whose classifier must answer within 0.5 s."""
    judging = Judging(judge, 0.5)
    running = asyncio.create_task(judging.run())
    await asyncio.sleep(0)

    def new() -> tuple[OutputStage, Recorder, Asked]:
        reader, choice = Recorder(), Asked(0)
        stage = judged_by(judging, "r-1")(1, reader, Findings())
        stage.choice = choice
        return stage, reader, choice

    yield new
    judge.may_answer.set()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_sentences_are_judged_and_the_end_waits(new_stage: NewStage, judge: Judge) -> None:
    """Text goes out at once; each question is what came since the last, asked when a sentence has ended; the end waits
    for the last verdict."""
    stage, reader, _ = new_stage()
    judge.may_answer.clear()
    for text in ("One", " two. Th", "ree", " four.", " Five"):
        stage.choice_delta(1, [1], text, None)
    stage.choice_finished(1, END)
    assert reader.text == "One two. Three four. Five"
    assert reader.finishes == []
    judge.may_answer.set()
    await until(lambda: bool(reader.finishes))
    assert judge.asked == ["One two. Th", "ree four. Five"]
    assert reader.finish == END


async def test_a_verdict_that_stops(new_stage: NewStage) -> None:
    """It cuts the choice at the engine: reason content_filter, what was used, and where the judged text stood."""
    stage, reader, choice = new_stage()
    stage.choice_delta(1, [1], "Fine. ", None)
    await asyncio.sleep(0.1)
    stage.choice_delta(1, [2], "It is bad.", None, Parsed("Hm. ", ()))
    await until(lambda: bool(reader.finishes))
    assert choice.cuts == 1
    assert reader.finish.reason is FinishReason.CONTENT_FILTER
    assert reader.finish.filter_matches == (FilterMatch(FilterAction.STOP, "bad", 6, 14),)
    stage.choice_delta(1, [3], "more", None)
    assert reader.text == "Fine. It is bad."


async def test_a_verdict_that_reports(new_stage: NewStage) -> None:
    """It is told in a delta and at the end, and nothing else changes."""
    stage, reader, choice = new_stage()
    stage.choice_delta(1, [1], "How odd.", None)
    stage.choice_finished(1, END)
    await until(lambda: bool(reader.finishes))
    told = FilterMatch(FilterAction.REPORT, "odd", 0, 8)
    assert [parsed and list(parsed.filter_matches) for parsed in reader.parsed] == [None, [told]]
    assert (reader.finish.reason, reader.finish.filter_matches, choice.cuts) == (FinishReason.STOP, (told,), 0)


async def test_text_without_sentences_is_judged_too(new_stage: NewStage, judge: Judge) -> None:
    """After a thousand characters there is a question, whatever they are."""
    stage, _, _ = new_stage()
    stage.choice_delta(1, [1], "a" * 999, None)
    await asyncio.sleep(0.05)
    assert judge.asked == []
    stage.choice_delta(1, [1], "a", None)
    await until(lambda: len(judge.asked) == 1)


@pytest.mark.parametrize("fault", ["break it.", "late."])
async def test_a_classifier_that_fails_or_is_late_ends_the_stream(
    new_stage: NewStage, judge: Judge, fault: str
) -> None:
    """The generation fails, also where its end was only waiting for the verdict; the log does not hold the text."""
    stage, reader, _ = new_stage()
    if fault == "late.":
        judge.may_answer.clear()
    begin = time.monotonic()
    with structlog.testing.capture_logs() as lines:
        stage.choice_delta(1, [1], fault, None)
        stage.choice_finished(1, END)
        await until(lambda: bool(reader.errors))
    assert time.monotonic() - begin < 2
    (error,) = reader.errors
    assert isinstance(error, Unavailable) and error.reason == "CLASSIFIER_FAILED"
    assert reader.finishes == []
    (line,) = lines
    assert (line["log_level"], line["request_id"]) == ("error", "r-1") and "secret" not in str(line)


async def test_without_a_running_service_nothing_passes_unjudged(judge: Judge) -> None:
    """Where nobody takes the questions, the choice fails."""
    reader = Recorder()
    stage = judged_by(Judging(judge, 1), "r-1")(1, reader, Findings())
    stage.choice = Asked(0)
    stage.choice_delta(1, [1], "A.", None)
    assert [error.reason for error in reader.errors] == ["CLASSIFIER_FAILED"]
