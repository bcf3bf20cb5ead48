"""Stages: what stands between a choice and its generation and reads, changes or ends the choice's output.

A generation has none unless an output filter or a format check applies to it. Its stages are made once for each choice;
the choice speaks to the first of them, each to the next, the last to the generation. What comes to them has no stop
strings any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from services.chassis.errors import ServiceError
from services.tokenizer.choice import ChoiceReader
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.findings import MAX_FINDINGS, Findings
from services.tokenizer.logprobs import Logprobs


class StagedChoice(Protocol):
    """What a stage may ask of the choice before it."""

    def cut(self) -> Usage:
        """End it at once, at the engine too. Returns: what it used."""

    def behind(self) -> int | None:
        """Most characters that the tokens passed on so far have beyond the text passed on; None: not known."""


class OutputStage:
    """A stage that passes everything on as it is. Subclasses override what they change.

    Args:
        index: of the choice in its generation.
        reader: the next stage, or the generation.
        findings: of the choice; all its stages share them.
    """

    choice: StagedChoice
    """That speaks to it; set before anything comes."""

    def __init__(self, index: int, reader: ChoiceReader, findings: Findings) -> None:
        self.index = index
        self.reader = reader
        self.findings = findings
        self.over = False
        """Ended here or failed: what still comes is dropped."""

    def choice_started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None) -> None:
        """Pass on the start."""
        self.reader.choice_started(prompt_tokens, cached_tokens, prompt_logprobs)

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Pass on a piece. What was found in it goes into its `parsed`, and into the findings."""
        if not self.over:
            self.reader.choice_delta(index, token_ids, text, logprobs, parsed)

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Pass on the end, with all that was found."""
        if not self.over:
            self.over = True
            self.reader.choice_finished(index, self._told(finish))

    def choice_failed(self, error: ServiceError) -> None:
        """Pass on a failure."""
        if not self.over:
            self.over = True
            self.reader.choice_failed(error)

    def end(self, reason: FinishReason) -> None:
        """End the choice here and at the engine; nothing more is passed on. What it generated counts as used."""
        self.over = True
        self.reader.choice_finished(self.index, self._told(Finish(reason, None, self.choice.cut())))

    def _told(self, finish: Finish) -> Finish:
        return replace(
            finish,
            filter_matches=tuple(self.findings.filter_matches[:MAX_FINDINGS]),
            format_faults=tuple(self.findings.format_faults[:MAX_FINDINGS]),
        )


NewStage = Callable[[int, ChoiceReader, Findings], OutputStage]
"""Makes a choice's stage of the choice's index, what it speaks to, and the choice's findings."""


def staged(index: int, reader: ChoiceReader, new_stages: Sequence[NewStage]) -> list[OutputStage]:
    """The stages of one choice, in order, at least one; the last speaks to `reader`."""
    findings = Findings()
    stages: list[OutputStage] = []
    for new_stage in reversed(new_stages):
        stage = new_stage(index, reader, findings)
        stages.append(stage)
        reader = stage
    return stages[::-1]
