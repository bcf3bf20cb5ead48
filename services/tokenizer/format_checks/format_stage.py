"""The stage that checks the form of a choice's content while it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from services.chassis.errors import InternalError
from services.tokenizer.choice import ChoiceReader
from services.tokenizer.events import Finish, FinishReason, Parsed
from services.tokenizer.findings import MAX_FINDINGS, Findings, FormatCheck, FormatFault
from services.tokenizer.format_checks.code_blocks import CodeBlocks
from services.tokenizer.format_checks.json_text import JsonText
from services.tokenizer.format_checks.port import Fault, FormatChecker
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import NewStage, OutputStage

log = structlog.get_logger(__name__)

_CHECKERS: Mapping[FormatCheck, Callable[[], FormatChecker]] = {
    FormatCheck.JSON: JsonText,
    FormatCheck.CODE_BLOCKS: CodeBlocks,
}

_Found = tuple[FormatCheck, Fault]


class FormatStage(OutputStage):
    """Tells the faults of the content in the delta that shows them, and those that its end shows with the end.

    A failure of a check ends the choice with an error: it harms no other.

    Args:
        index, reader, findings: as `OutputStage`.
        checks: what the content is checked for.
        stops: ends the choice where the first fault shows; the text then ends before the character that showed it.
    """

    def __init__(
        self, index: int, reader: ChoiceReader, findings: Findings, checks: Sequence[FormatCheck], stops: bool
    ) -> None:
        super().__init__(index, reader, findings)
        self._checkers = [(check, _CHECKERS[check]()) for check in checks]
        self._stops = stops
        self._characters = 0

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Check a piece and pass it on."""
        if self.over:
            return
        found: list[_Found] = []
        if text:
            try:
                for check, checker in self._checkers:
                    if faults := checker.feed(text):
                        found += [(check, fault) for fault in faults]
            except Exception:
                log.exception("format check failed", choice=self.index)
                self.choice_failed(InternalError())
                return
        if not found:
            self._characters += len(text)
            self.reader.choice_delta(index, token_ids, text, logprobs, parsed)
            return
        found.sort(key=lambda one: one[1].shown_at)
        if self._stops:
            end = found[0][1].shown_at
            found = [one for one in found if one[1].shown_at == end]
            text = text[: end - self._characters]
        self._characters += len(text)
        told = replace(parsed or Parsed("", ()), format_faults=self._told_now(found))
        self.reader.choice_delta(index, token_ids, text, logprobs, told)
        if self._stops:
            self.end(FinishReason.CONTENT_FILTER)

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Pass on the end, with the faults that it shows."""
        if self.over:
            return
        # An answer that calls tools and says nothing has no form.
        if self._characters or finish.reason is not FinishReason.TOOL_CALLS:
            try:
                found = [(check, fault) for check, checker in self._checkers for fault in checker.finish()]
            except Exception:
                log.exception("format check failed", choice=self.index)
                self.choice_failed(InternalError())
                return
            self._told_now(found)
        super().choice_finished(index, finish)

    def _told_now(self, found: Sequence[_Found]) -> list[FormatFault]:
        faults = [FormatFault(check, fault.position, fault.message) for check, fault in found]
        room = MAX_FINDINGS - len(self.findings.format_faults)
        self.findings.format_faults += faults[: max(0, room)]
        return faults


def format_stage(checks: Sequence[FormatCheck], stops: bool) -> NewStage:
    """Return what makes the stage of each choice."""
    return lambda index, reader, findings: FormatStage(index, reader, findings, checks, stops)
