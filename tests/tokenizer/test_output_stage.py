"""Stages between a choice and its reader: their order, what they share, and how one ends the choice."""

from __future__ import annotations

from dataclasses import replace

from services.chassis.errors import Unavailable
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.findings import MAX_FINDINGS, FilterAction, FilterMatch, FormatCheck, FormatFault
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import OutputStage, staged
from tests.tokenizer.choice_recorder import Recorder

USED = Usage(9, 5, 4)
END = Finish(FinishReason.STOP, "x", USED)
FAULT = FormatFault(FormatCheck.JSON, 3, "no value")
MATCH = FilterMatch(FilterAction.REPORT, "r", 0, 1)


class Choice:
    """A choice that counts how often it was cut."""

    cuts = 0

    def cut(self) -> Usage:
        """Count it."""
        self.cuts += 1
        return USED

    def behind(self) -> int | None:
        """Nothing."""
        return 0


class Adding(OutputStage):
    """A stage that adds its mark to the text, and ends the choice at a word."""

    mark = ""

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Add it."""
        super().choice_delta(index, token_ids, text + self.mark, logprobs, parsed)
        if "end" in text:
            self.findings.format_faults.append(FAULT)
            self.end(FinishReason.CONTENT_FILTER)


class First(Adding):
    """The first."""

    mark = "1"


class Second(Adding):
    """The second."""

    mark = "2"


def test_stages_stand_in_order() -> None:
    """The choice speaks to the first, each to the next, the last to the reader; a stage that changes nothing passes all
    on."""
    reader = Recorder()
    first, *rest = staged(1, reader, [First, OutputStage, Second])
    assert [type(stage) for stage in (first, *rest)] == [First, OutputStage, Second]
    parsed, logprobs = Parsed("r", ()), Logprobs([1.0], [1])
    first.choice_started(9, 4, None)
    first.choice_delta(1, [7], "a", logprobs, parsed)
    first.choice_finished(1, END)
    assert (reader.starts, reader.deltas, reader.parsed) == ([(9, 4)], [([7], "a12")], [parsed])
    assert reader.finish == END


def test_the_end_tells_what_all_stages_found() -> None:
    """Findings are shared, and those of each kind are told up to the bound."""
    reader = Recorder()
    first, second = staged(1, reader, [OutputStage, OutputStage])
    second.findings.filter_matches += [MATCH] * (MAX_FINDINGS + 5)
    first.findings.format_faults.append(FAULT)
    first.choice_finished(1, END)
    assert reader.finish == replace(END, filter_matches=(MATCH,) * MAX_FINDINGS, format_faults=(FAULT,))


def test_a_stage_that_ends_the_choice() -> None:
    """The choice is cut once, its usage counts, and nothing that it still says comes through, whichever stage ended
    it."""
    for new_stages in ([First, OutputStage], [OutputStage, First], [OutputStage, First, OutputStage]):
        reader, choice = Recorder(), Choice()
        stages = staged(1, reader, new_stages)
        for stage in stages:
            stage.choice = choice
        stages[0].choice_delta(1, [7], "the end", None)
        stages[0].choice_delta(1, [8], "more", None)
        stages[0].choice_finished(1, END)
        stages[0].choice_failed(Unavailable("gone"))
        assert choice.cuts == 1
        assert reader.text == "the end1"
        assert reader.finish == Finish(FinishReason.CONTENT_FILTER, None, USED, (), (FAULT,))
        assert reader.errors == []


def test_a_failure_is_told_once() -> None:
    """After a failure nothing comes."""
    reader = Recorder()
    stages = staged(1, reader, [OutputStage, OutputStage])
    error = Unavailable("gone")
    stages[0].choice_failed(error)
    stages[0].choice_delta(1, [7], "a", None)
    stages[0].choice_finished(1, END)
    assert (reader.errors, reader.deltas, reader.finishes) == ([error], [], [])
