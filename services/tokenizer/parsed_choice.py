"""One choice of a chat whose output holds more than content: reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from services.tokenizer.choice import Choice, ChoiceReader
from services.tokenizer.decoder import IncrementalDecoder
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_parsers.port import OutputParser, Part, Reasoning, ToolCallPiece
from services.tokenizer.stop_strings import StopMatcher


class ParsedChoice(Choice):
    """Decodes one engine stream and takes its text apart; an `EngineSink`.

    Stop strings are looked for in the content alone: they must end neither the reasoning nor a call's arguments.

    Args:
        index, reader, decoder, matcher, show_stop_token: as `Choice`.
        parser: of this stream alone.
        one_call: the stream ends where a second call begins.
    """

    __slots__ = (
        "_answered",
        "_called",
        "_matched",
        "_one_call",
        "_over_at_call",
        "_parser",
        "_pieces",
        "_reasoned",
        "_reasoning_tokens",
        "_reasonings",
        "_texts",
    )

    def __init__(
        self,
        index: int,
        reader: ChoiceReader,
        decoder: IncrementalDecoder,
        matcher: StopMatcher | None,
        show_stop_token: bool,
        parser: OutputParser,
        one_call: bool,
    ) -> None:
        super().__init__(index, reader, decoder, matcher, show_stop_token)
        self._parser = parser
        self._one_call = one_call
        self._matched: str | None = None
        self._over_at_call = False
        self._called = False
        self._reasoned = False
        self._answered = False
        self._reasoning_tokens = 0
        # Parts since the last delta.
        self._texts: list[str] = []
        self._reasonings: list[str] = []
        self._pieces: list[ToolCallPiece] = []

    def delta(self, token_ids: list[int], ends_with_stop: bool, logprobs: Logprobs | None = None) -> None:
        """Take the next tokens, one by one, so that text, ids and counts agree on where a stop string ended."""
        shown = len(token_ids) - (ends_with_stop and not self._show_stop_token)
        for position in range(shown):
            text = self._decoder.feed(token_ids[position : position + 1])
            if logprobs is not None:
                logprobs.text_offsets.append(self._characters)
                self._characters += len(text)
            if self._matcher is not None:
                self._matcher.begin_token()
            if text:
                self._sort(self._parser.feed(text))
            self._reasoning_tokens += not self._answered
            if self._matched is not None or self._over_at_call:
                used = position + 1
                self._deliver(token_ids[:used], logprobs.head(used) if logprobs is not None else None)
                self.cancel_stream()
                self._end("", FinishReason.STOP, self._matched)
                return
        if logprobs is not None and shown < len(token_ids):
            logprobs.text_offsets.append(self._characters)
        self._deliver(token_ids, logprobs)

    def finished(self, finish: Finish) -> None:
        """Take the end: what is held back is sorted now."""
        text = self._decoder.flush()
        self._sort([*(self._parser.feed(text) if text else ()), *self._parser.flush()])
        if self._matched is not None or self._over_at_call:
            self._end("", FinishReason.STOP, self._matched)
            return
        if self._matcher is not None:
            self._texts.append(self._matcher.flush())
        self._end("", finish.reason, finish.matched_stop)

    def behind(self) -> None:
        """Not known: a parser leaves out tags and holds back what it has not sorted yet."""

    def _end(self, text: str, reason: FinishReason, matched_stop: str | int | None) -> None:
        self._deliver([], None)
        if reason is FinishReason.STOP and self._called:
            reason = FinishReason.TOOL_CALLS
        super()._end(text, reason, matched_stop)

    def _usage(self) -> Usage:
        return replace(super()._usage(), reasoning_tokens=self._reasoning_tokens if self._reasoned else 0)

    def _sort(self, parts: Iterable[Part]) -> None:
        for part in parts:
            if isinstance(part, Reasoning):
                self._reasoned = True
                self._reasonings.append(part.text)
                continue
            self._answered = True
            if isinstance(part, ToolCallPiece):
                self._add_piece(part)
            elif self._matcher is None:
                self._texts.append(part.text)
            else:
                result = self._matcher.feed(part.text)
                self._texts.append(result.text)
                if result.match is not None:
                    self._matched = result.match.stop
            if self._matched is not None or self._over_at_call:
                return

    def _add_piece(self, piece: ToolCallPiece) -> None:
        if self._one_call and piece.index > 0:
            self._over_at_call = True
            return
        self._called = True
        if piece.id is not None and self._matcher is not None:
            # No stop string reaches from before a call to after it.
            self._texts.append(self._matcher.flush())
        last = self._pieces[-1] if self._pieces else None
        if last is not None and last.index == piece.index:
            self._pieces[-1] = replace(last, arguments=last.arguments + piece.arguments)
        else:
            self._pieces.append(piece)

    def _deliver(self, token_ids: list[int], logprobs: Logprobs | None) -> None:
        """Pass on what came of these tokens, with those whose text was held back before."""
        text, reasoning, pieces = "".join(self._texts), "".join(self._reasonings), self._pieces
        self._texts, self._reasonings, self._pieces = [], [], []
        parsed = Parsed(reasoning, pieces) if reasoning or pieces else None
        self._pass_on(token_ids, text, logprobs, parsed)
