"""The stage that has a choice's output judged while it goes out."""

from __future__ import annotations

import re

from services.chassis.errors import Unavailable
from services.tokenizer.choice import ChoiceReader
from services.tokenizer.classifiers.judging import Judging
from services.tokenizer.classifiers.port import Verdict
from services.tokenizer.events import Finish, FinishReason, Parsed
from services.tokenizer.findings import MAX_FINDINGS, FilterAction, FilterMatch, Findings
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import NewStage, OutputStage

_SENTENCE_END = re.compile(r"[.!?…。！？\n]")
_MOST_CHARACTERS = 1000
"""Text that is judged even where no sentence has ended."""


class ClassifierStage(OutputStage):
    """Has content and reasoning judged: each time a sentence has ended, all that came since the last question.

    Text goes out while it is judged, so a verdict that stops comes after the sentence that it is of. The end of the
    choice waits for the last verdict. Where a verdict fails or is late, the generation ends with an error.

    Args:
        index, reader, findings: as `OutputStage`.
        judging: asks the classifier.
        request_id: for the log.
    """

    def __init__(self, index: int, reader: ChoiceReader, findings: Findings, judging: Judging, request_id: str) -> None:
        super().__init__(index, reader, findings)
        self._judging = judging
        self._request_id = request_id
        self._unjudged = ""
        # Characters of all text before what is unjudged, and of what is being judged.
        self._judged = 0
        self._asked = 0
        self._finish: Finish | None = None

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Pass on a piece, and have it judged."""
        if self.over:
            return
        self.reader.choice_delta(index, token_ids, text, logprobs, parsed)
        new = text if parsed is None else parsed.reasoning + text
        if new:
            self._unjudged += new
            if _SENTENCE_END.search(new) or len(self._unjudged) >= _MOST_CHARACTERS:
                self._ask()

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Keep the end until the last verdict is there."""
        if self.over:
            return
        self._finish = finish
        self._ask()

    def _ask(self) -> None:
        if self._asked:
            # One at a time; what comes meanwhile is judged together.
            return
        if self._unjudged:
            text, self._unjudged = self._unjudged, ""
            self._asked = len(text)
            self._judging.ask(text, self._request_id, self._tell, self._fail)
        elif self._finish is not None:
            super().choice_finished(self.index, self._finish)

    def _tell(self, verdict: Verdict | None) -> None:
        if self.over:
            return
        start, length = self._judged, self._asked
        self._judged, self._asked = start + length, 0
        if verdict is not None:
            match = FilterMatch(verdict.action, verdict.label, start, length)
            if len(self.findings.filter_matches) < MAX_FINDINGS:
                self.findings.filter_matches.append(match)
            self.reader.choice_delta(self.index, [], "", None, Parsed("", (), (match,)))
            if verdict.action is FilterAction.STOP:
                self.end(FinishReason.CONTENT_FILTER)
                return
        if self._finish is not None or _SENTENCE_END.search(self._unjudged):
            self._ask()

    def _fail(self) -> None:
        self.choice_failed(
            Unavailable("the answer could not be judged, so it ends here; try again later", reason="CLASSIFIER_FAILED")
        )


def judged_by(judging: Judging, request_id: str) -> NewStage:
    """What makes the stages of a request's choices."""
    return lambda index, reader, findings: ClassifierStage(index, reader, findings, judging, request_id)
