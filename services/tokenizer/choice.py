"""One choice of a generation: token ids in, text out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from services.chassis.errors import ServiceError
from services.tokenizer.decoder import IncrementalDecoder
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.stop_strings import StopMatcher


class ChoiceReader(Protocol):
    """The generation that a choice belongs to."""

    def choice_started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None) -> None:
        """The choice's prompt is computed."""

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """The choice has text, or what was parsed out of it."""

    def choice_finished(self, index: int, finish: Finish) -> None:
        """The choice ended."""

    def choice_failed(self, error: ServiceError) -> None:
        """The choice is over with an error."""


class Choice:
    """Decodes one engine stream; an `EngineSink`.

    Args:
        index: of the choice in its generation.
        reader: where text goes.
        decoder: of this stream alone.
        matcher: of this stream alone, None without stop strings.
        show_stop_token: whether an end or stop token becomes text.
    """

    __slots__ = (
        "_cached_tokens",
        "_characters",
        "_completion_tokens",
        "_decoder",
        "_index",
        "_matcher",
        "_prompt_tokens",
        "_reader",
        "_show_stop_token",
        "_textless_ids",
        "_textless_logprobs",
        "cancel_stream",
        "ended",
    )

    def __init__(
        self,
        index: int,
        reader: ChoiceReader,
        decoder: IncrementalDecoder,
        matcher: StopMatcher | None,
        show_stop_token: bool,
    ) -> None:
        self._index = index
        self._reader = reader
        self._decoder = decoder
        self._matcher = matcher
        self._show_stop_token = show_stop_token
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._completion_tokens = 0
        # Tokens whose text is still held back.
        self._textless_ids: list[int] = []
        self._textless_logprobs: Logprobs | None = None
        # Of the text decoded so far; counted only where log probabilities tell it.
        self._characters = 0
        self.cancel_stream: Callable[[], None] = lambda: None
        self.ended = False

    def started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None = None) -> None:
        """Take the start."""
        self._prompt_tokens = prompt_tokens
        self._cached_tokens = cached_tokens
        self._reader.choice_started(prompt_tokens, cached_tokens, prompt_logprobs)

    def delta(self, token_ids: list[int], ends_with_stop: bool, logprobs: Logprobs | None = None) -> None:
        """Take the next tokens."""
        shown = len(token_ids) - (ends_with_stop and not self._show_stop_token)
        matcher = self._matcher
        if logprobs is None and (matcher is None or shown == 1):
            text = self._decoder.feed(token_ids if shown == len(token_ids) else token_ids[:shown])
            if matcher is None or matcher.passes(text):
                if text and not self._textless_ids:
                    # Nearly always; the rest of `_pass_on` has nothing to do then.
                    self._completion_tokens += len(token_ids)
                    self._reader.choice_delta(self._index, token_ids, text, None)
                else:
                    self._pass_on(token_ids, text)
                return
            decoded = [text]
        else:
            # Token by token, so that text, ids, counts and log probabilities agree on where each token's text begins
            # and where a stop string ended.
            decoded = [self._decoder.feed(token_ids[position : position + 1]) for position in range(shown)]
        texts: list[str] = []
        for position, text in enumerate(decoded):
            if logprobs is not None:
                logprobs.text_offsets.append(self._characters)
                self._characters += len(text)
            if matcher is None:
                texts.append(text)
                continue
            matcher.begin_token()
            result = matcher.feed(text)
            texts.append(result.text)
            if result.match is not None:
                used = position + 1
                self._pass_on(token_ids[:used], "".join(texts), logprobs.head(used) if logprobs is not None else None)
                self._stop(result.match.stop)
                return
        if logprobs is not None and shown < len(token_ids):
            logprobs.text_offsets.append(self._characters)
        self._pass_on(token_ids, "".join(texts), logprobs)

    def finished(self, finish: Finish) -> None:
        """Take the end: what is held back is the choice's own text now."""
        text = self._decoder.flush()
        if self._matcher is not None:
            result = self._matcher.feed(text)
            if result.match is not None:
                self._pass_on([], result.text)
                self._stop(result.match.stop)
                return
            text = result.text + self._matcher.flush()
        self._end(text, finish.reason, finish.matched_stop)

    def failed(self, error: ServiceError) -> None:
        """Take the failure."""
        self.ended = True
        self._reader.choice_failed(error)

    def cut(self) -> Usage:
        """End it at once, at the engine too, without a word to its reader. Returns: what it used."""
        self.ended = True
        self.cancel_stream()
        return self._usage()

    def behind(self) -> int | None:
        """Most characters that the tokens passed on so far have beyond the text passed on; None: not known."""
        held = self._matcher.held_characters if self._matcher is not None else 0
        return held + self._decoder.inside_character

    def _stop(self, stop: str) -> None:
        self.cancel_stream()
        self._end("", FinishReason.STOP, stop)

    def _end(self, text: str, reason: FinishReason, matched_stop: str | int | None) -> None:
        self.ended = True
        if text or self._textless_ids:
            self._reader.choice_delta(self._index, self._textless_ids, text, self._textless_logprobs)
        self._reader.choice_finished(self._index, Finish(reason, matched_stop, self._usage()))

    def _usage(self) -> Usage:
        return Usage(self._prompt_tokens, self._completion_tokens, self._cached_tokens)

    def _pass_on(
        self, token_ids: list[int], text: str, logprobs: Logprobs | None = None, parsed: Parsed | None = None
    ) -> None:
        self._completion_tokens += len(token_ids)
        if not text and parsed is None:
            self._textless_ids.extend(token_ids)
            self._hold(logprobs)
            return
        if self._textless_ids:
            token_ids = self._textless_ids + token_ids
            self._textless_ids = []
            self._hold(logprobs)
            logprobs, self._textless_logprobs = self._textless_logprobs, None
        self._reader.choice_delta(self._index, token_ids, text, logprobs, parsed)

    def _hold(self, logprobs: Logprobs | None) -> None:
        if self._textless_logprobs is None:
            self._textless_logprobs = logprobs
        elif logprobs is not None:
            self._textless_logprobs.extend(logprobs)
