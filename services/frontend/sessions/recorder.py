"""A turn under way: passes a generation's events on and keeps what it gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.frontend.context_policy import context_object
from services.frontend.findings import FilterMatch, FormatFault, finding_objects
from services.frontend.running import Running
from services.frontend.sessions.expansion import Plan
from services.frontend.sessions.session import Outcome, Status, Summary
from services.frontend.shapes import usage_object
from services.frontend.sink import Detail, Finished, Sink, Started, Usage
from services.frontend.tool_calls import ToolCallPiece, whole_objects

# Keeps a turn's end, or with None takes the turn back; calls the function with None or the failure once that is done.
Keep = Callable[["Recorder", Outcome | None, Callable[[Exception | None], None]], None]


class Recorder:
    """Stands between a generation and its sink. It is the generation's `Running` too.

    The end is told only once it is kept, so that whoever reads it may rely on it.

    Args:
        plan: of the turn.
        sink: takes the events.
        keep: keeps the end.
    """

    __slots__ = (
        "_began",
        "_cancelled",
        "_faults",
        "_first_at",
        "_first_tokens",
        "_generation",
        "_keep",
        "_last_at",
        "_matches",
        "_pieces",
        "_reasonings",
        "_sink",
        "_started",
        "_texts",
        "_tokens",
        "over",
        "plan",
        "renewed",
    )

    def __init__(self, plan: Plan, sink: Sink, keep: Keep) -> None:
        self.plan = plan
        # When the lease was last known to be held.
        self.renewed = time.monotonic()
        self.over = False
        self._sink = sink
        self._keep = keep
        self._generation: Running | None = None
        self._cancelled = False
        self._started: Started | None = None
        self._texts: list[str] = []
        self._reasonings: list[str] = []
        self._pieces: list[ToolCallPiece] = []
        self._matches: list[FilterMatch] = []
        self._faults: list[FormatFault] = []
        self._began = time.perf_counter()
        self._first_at = self._last_at = 0.0
        self._first_tokens = self._tokens = 0

    def run(self, generation: Running) -> None:
        """Take over the generation whose events come here."""
        self._generation = generation

    def cancel(self) -> None:
        """End the generation and keep what there is of its answer. The sink is told nothing more."""
        self._cancelled = True
        self._end(self._outcome("partial"), _nothing)

    def lose(self, error: Exception) -> None:
        """End a turn that no longer holds its session, with an error."""
        self._end(self._outcome("partial"), lambda _: self._tell_failed(error))

    def snapshot(self) -> Outcome:
        """Return what there is of the answer."""
        return self._outcome("running")

    def started(self, started: Started) -> None:
        """Take the start."""
        self._started = started
        self._sink.started(started)

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        """Take the next piece of the answer."""
        self._last_at = time.perf_counter()
        if not self._first_at:
            self._first_at, self._first_tokens = self._last_at, len(token_ids)
        self._tokens += len(token_ids)
        if text:
            self._texts.append(text)
        if detail is not None:
            self._reasonings.append(detail.reasoning)
            self._pieces += detail.tool_calls
            self._matches += detail.filter_matches
            self._faults += detail.format_faults
        return self._sink.delta(index, token_ids, text, detail)

    def finished(self, finished: Finished) -> None:
        """Keep the answer, then tell its end, or that it could not be kept."""
        self._matches, self._faults = list(finished.filter_matches), list(finished.format_faults)
        outcome = replace(
            self._outcome("complete", finished.usage),
            finish_reason=finished.reason,
            usage=usage_object(finished.usage),
        )

        def tell(failure: Exception | None) -> None:
            if failure is not None:
                self._tell_failed(failure)
            elif not self._cancelled:
                self._sink.finished(finished)

        self._end(outcome, tell)

    def failed(self, error: Exception) -> None:
        """Keep what there is of the answer, then tell the failure. Where nothing has begun, nothing is kept."""
        outcome = None if self._started is None else self._outcome("partial")
        self._end(outcome, lambda _: self._tell_failed(error))

    @property
    def summary(self) -> Summary | None:
        """What the session keeps of the messages that were left out; None: as before."""
        report = None if self._started is None else self._started.context
        if report is None or not report.summary or not 0 < report.dropped_messages <= len(self.plan.sent_ids):
            return None
        return Summary(report.summary, self.plan.sent_ids[report.dropped_messages - 1])

    def _end(self, outcome: Outcome | None, tell: Callable[[Exception | None], None]) -> None:
        if self._generation is not None:
            self._generation.cancel()
        if not self.over:
            self.over = True
            self._keep(self, outcome, tell)

    def _tell_failed(self, error: Exception) -> None:
        if not self._cancelled:
            self._sink.failed(error)

    def _outcome(self, status: Status, usage: Usage | None = None) -> Outcome:
        before, started = self.plan.continued or Outcome("complete"), self._started
        content = before.content + "".join(self._texts)
        if started is None:
            return Outcome(status, content, before.reasoning)
        used = usage or Usage(started.prompt_tokens, self._tokens, started.cached_tokens)
        return Outcome(
            status=status,
            content=content,
            reasoning=before.reasoning + "".join(self._reasonings),
            tool_calls=whole_objects(self._pieces),
            model=started.model,
            usage=usage_object(used),
            stats=self._stats(used.completion_tokens),
            context=None if started.context is None else context_object(started.context),
            findings=self._findings(before),
        )

    def _stats(self, tokens: int) -> Mapping[str, Any] | None:
        if not self._first_at:
            return None
        took = self._last_at - self._first_at
        later = tokens - self._first_tokens
        return {
            "ttft_ms": round((self._first_at - self._began) * 1000, 1),
            "tokens_per_second": round(later / took, 2) if took > 0 and later > 0 else None,
        }

    def _findings(self, before: Outcome) -> Mapping[str, Any] | None:
        # The places count from the answer's beginning, before which there may be the text that it continues.
        moved = len(before.content)
        new = finding_objects(
            [replace(match, start=match.start + moved) for match in self._matches],
            [replace(fault, position=fault.position + moved) for fault in self._faults],
        )
        old = before.findings or {}
        return {name: [*old.get(name, ()), *new.get(name, ())] for name in {*old, *new}} or None


def _nothing(_: Exception | None) -> None:
    pass
