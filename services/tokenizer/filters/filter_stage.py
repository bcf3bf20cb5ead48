"""The stage that filters a choice's output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from services.chassis.errors import InternalError
from services.tokenizer.choice import ChoiceReader
from services.tokenizer.events import Finish, FinishReason, Parsed
from services.tokenizer.filters.channel import ActiveRules, Channel
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.filters.waiting_tokens import WaitingTokens
from services.tokenizer.findings import MAX_FINDINGS, FilterMatch, Findings
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_parsers.port import ToolCallPiece
from services.tokenizer.output_stage import OutputStage

log = structlog.get_logger(__name__)


# What of a piece goes out: token ids, content, log probabilities and the rest.
_Shown = tuple[list[int], str, Logprobs | None, Parsed | None]


class FilterStage(OutputStage):
    """Filters content, reasoning and the arguments of each call, each as a text of its own.

    Token ids and log probabilities go out with the text that they are of or after it, and not at all where some of that
    is masked. Where the output is taken apart, nobody knows which token is of which text: none go out then, unless the
    rules only report.

    A fault of the filter ends the generation with an error, without the text that it was at.

    Args:
        index, reader, findings: as `OutputStage`.
        active: the rules.
        request_id: for the log.
        metrics: count the matches.
        withheld: told of each number of tokens that do not go out.
    """

    def __init__(
        self,
        index: int,
        reader: ChoiceReader,
        findings: Findings,
        active: ActiveRules,
        request_id: str,
        metrics: FilterMetrics,
        withheld: Callable[[int], None],
    ) -> None:
        super().__init__(index, reader, findings)
        self._active = active
        self._request_id = request_id
        self._metrics = metrics
        self._withheld = withheld
        self._content = Channel(active)
        self._reasoning: Channel | None = None
        self._calls: dict[int, Channel] = {}
        self._tokens = WaitingTokens(withheld)
        self._guard = self._content.guard
        # Chosen once, since it runs for nearly each token.
        self._take_content: Callable[[list[int], str], _Shown] = lambda token_ids, text: self._filtered(
            token_ids, text, None, None
        )
        if active.watch is None:
            self._take_content = self._guarded
        elif active.guard is None:
            self._take_content = self._watched

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Filter a piece and pass on what may go out."""
        if self.over:
            return
        try:
            if parsed is None and logprobs is None:
                shown = self._take_content(token_ids, text)
            else:
                shown = self._filtered(token_ids, text, logprobs, parsed)
        except Exception:
            log.exception("output filter failed", request_id=self._request_id)
            self.choice_failed(InternalError())
            return
        shown_ids, shown_text, shown_logprobs, shown_parsed = shown
        if shown_text or shown_ids or shown_parsed is not None:
            self.reader.choice_delta(index, shown_ids, shown_text, shown_logprobs, shown_parsed)
            if shown_parsed is not None and self._stopped:
                self._log()
                self.end(FinishReason.CONTENT_FILTER)

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Pass on what was held back, then the end."""
        if self.over:
            return
        try:
            shown = self._rest()
        except Exception:
            log.exception("output filter failed", request_id=self._request_id)
            self.choice_failed(InternalError())
            return
        token_ids, text, logprobs, parsed = shown
        if text or token_ids or parsed is not None:
            self.reader.choice_delta(index, token_ids, text, logprobs, parsed)
        self._log()
        if self._stopped:
            self.end(FinishReason.CONTENT_FILTER)
        else:
            super().choice_finished(index, finish)

    def _guarded(self, token_ids: list[int], text: str) -> _Shown:
        """The same as `_filtered` for content alone, where no rule only reports, and nearly always nothing matches."""
        guard = self._guard
        assert guard is not None
        state = guard.state
        following = state.moves.get(text) or guard.following(text)
        if following is None or (behind := self.choice.behind()) is None:
            return self._filtered(token_ids, text, None, None)
        begin, seen = guard.out + state.length, state.held + text
        guard.state = following
        guard.out = out = guard.out + len(seen) - following.length
        runs = self._tokens.runs
        runs.append((begin, begin + len(text) + behind, token_ids, None))
        token_ids = runs.popleft()[2] if runs[0][1] <= out else []
        while runs and runs[0][1] <= out:
            token_ids = token_ids + runs.popleft()[2]
        return token_ids, seen[: len(seen) - following.length], None, None

    def _watched(self, token_ids: list[int], text: str) -> _Shown:
        """The same for content alone, where all rules only report."""
        watch = self._content.watch
        assert watch is not None
        watch.feed(text)
        return token_ids, text, None, self._parsed("", ()) if watch.matches else None

    def _filtered(self, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None) -> _Shown:
        reasoning = self._reasoned(parsed.reasoning) if parsed is not None else ""
        if self._stopped:
            text = ""
            self._withheld(len(token_ids))
            token_ids, logprobs = [], None
        else:
            guard = self._content.guard
            begin = 0 if guard is None else guard.taken
            text = self._content.feed(text)
            token_ids, logprobs = self._tokens_of(begin, token_ids, logprobs)
        calls = self._called(parsed.tool_calls) if parsed is not None else []
        if not self._stopped:
            return token_ids, text, logprobs, self._parsed(reasoning, calls)
        later_ids, text, later_logprobs, rest = self._rest(reasoning, text, calls)
        return token_ids + later_ids, text, _joined(logprobs, later_logprobs), rest

    def _rest(self, reasoning: str = "", text: str = "", calls: Sequence[ToolCallPiece] = ()) -> _Shown:
        """All that is held back, behind what goes out before it. Tokens that must not go out now never do."""
        if self._reasoning is not None:
            reasoning += self._reasoning.flush()
        text += self._content.flush()
        held = [ToolCallPiece(index, channel.flush()) for index, channel in self._calls.items()]
        token_ids, logprobs = self._released()
        self._tokens.drop()
        parsed = self._parsed(reasoning, [*calls, *(piece for piece in held if piece.arguments)])
        return token_ids, text, logprobs, parsed

    @property
    def _stopped(self) -> bool:
        guard = self._content.guard
        if guard is None or guard.stopped:
            return guard is not None
        if self._reasoning is None and not self._calls:
            return False
        return any(channel.stopped for channel in self._others())

    def _others(self) -> list[Channel]:
        return [*([] if self._reasoning is None else [self._reasoning]), *self._calls.values()]

    def _tokens_of(
        self, begin: int, token_ids: list[int], logprobs: Logprobs | None
    ) -> tuple[list[int], Logprobs | None]:
        """Which tokens may go out, once those of this delta came; their text begins at `begin`."""
        guard = self._content.guard
        if guard is None:
            return token_ids, logprobs
        behind = self.choice.behind()
        if behind is None:
            guard.masked.clear()
            self._withheld(len(token_ids))
            return [], None
        if token_ids:
            self._tokens.runs.append((begin, guard.taken + behind, token_ids, logprobs))
        return self._released()

    def _released(self) -> tuple[list[int], Logprobs | None]:
        guard = self._content.guard
        if guard is None:
            return [], None
        return self._tokens.release(guard.out, guard.masked)

    def _reasoned(self, text: str) -> str:
        if not text:
            return ""
        if self._reasoning is None:
            self._reasoning = Channel(self._active)
        return _fed(self._reasoning, text)

    def _called(self, pieces: Sequence[ToolCallPiece]) -> list[ToolCallPiece]:
        shown: list[ToolCallPiece] = []
        for piece in pieces:
            if self._stopped:
                break
            channel = self._calls.get(piece.index)
            if channel is None:
                channel = self._calls[piece.index] = Channel(self._active)
            arguments = _fed(channel, piece.arguments)
            if arguments or piece.id is not None:
                shown.append(replace(piece, arguments=arguments))
        return shown

    def _parsed(self, reasoning: str, calls: Sequence[ToolCallPiece]) -> Parsed | None:
        """What goes out beside content, with the matches that came."""
        matches: list[FilterMatch] = self._content.take_matches()
        for channel in self._others():
            matches += channel.take_matches()
        for match in matches:
            self._metrics.matched(match)
        if matches:
            room = MAX_FINDINGS - len(self.findings.filter_matches)
            self.findings.filter_matches += matches[: max(0, room)]
        return Parsed(reasoning, calls, matches) if reasoning or calls or matches else None

    def _log(self) -> None:
        if self.findings.filter_matches:
            rules = Counter(f"{match.rule}: {match.action.value}" for match in self.findings.filter_matches)
            log.info("output filter matched", request_id=self._request_id, choice=self.index, matches=dict(rules))


def _fed(channel: Channel, text: str) -> str:
    """What may go out of a text whose tokens nobody knows, so that nobody asks where it was masked."""
    out = channel.feed(text)
    if channel.guard is not None:
        channel.guard.masked.clear()
    return out


def _joined(first: Logprobs | None, second: Logprobs | None) -> Logprobs | None:
    if first is None or second is None:
        return first or second
    first.extend(second)
    return first
