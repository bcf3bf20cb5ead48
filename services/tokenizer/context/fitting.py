"""Making a conversation fit by its policy; with `summarize` the model is asked in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from services.chassis.errors import InvalidRequest
from services.tokenizer.context.summary_prompt import (
    LEAST_SUMMARY_TOKENS,
    Question,
    Summarizing,
    summary_frame,
    summary_room,
    with_summary,
)
from services.tokenizer.context.summary_stream import Written
from services.tokenizer.context.turns import Message
from services.tokenizer.context.window import Window, fitted
from services.tokenizer.context_policy import ContextPolicyKind
from services.tokenizer.events import ContextReport, Usage
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.text_tokenizer import TextTokenizer

MOST_QUESTIONS = 4
"""Streams that may be used for one summary; turns that need more are left out of it, the oldest first."""

# Tries to shorten a summary that takes more tokens in its place than it was written with.
_SHORTENINGS = 4

Result = TypeVar("Result")


class Surroundings(Protocol):
    """What fitting needs of the generation that it is for."""

    async def write_summary(self, token_ids: list[int], most_tokens: int) -> Written:
        """Have the model go on with a prompt, greedily; nothing where the generation is over.

        Raises:
            ServiceError: it failed.
        """

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Do what takes CPU, where it disturbs nobody.

        Raises:
            TimeoutError: the generation's time is over.
        """


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt that fits; `report` is None where nothing was left out."""

    token_ids: list[int]
    report: ContextReport | None = None


@dataclass(frozen=True, slots=True)
class _Told:
    """A summary, what it took, and how many messages it does not hold whole."""

    summary: str
    usage: Usage | None
    unsummarized: int


class Fitting:
    """Makes one conversation fit.

    Args:
        chat: the conversation; its policy is not ERROR.
        limit: most tokens of the prompt.
        context_length: most tokens of a prompt and what is generated after it.
    """

    def __init__(
        self,
        chat: ChatPrompt,
        tokenizer: TextTokenizer,
        limit: int,
        context_length: int,
        surroundings: Surroundings,
    ) -> None:
        self._chat = chat
        self._tokenizer = tokenizer
        self._limit = limit
        self._context_length = context_length
        self._compute = surroundings.compute
        self._write = surroundings.write_summary

    async def fit(self) -> Fitted:
        """Leave out what must be, and have it summarized where that is asked for.

        Raises:
            InvalidRequest: even what always stays does not fit, or the messages make no prompt.
            TimeoutError: the time is over.
            ServiceError: the summary's stream failed.
        """
        if self._chat.policy.kind is not ContextPolicyKind.SUMMARIZE:
            window = await self._compute(lambda: fitted(self._chat, self._tokenizer, self._limit))
            return Fitted(window.token_ids, self._report(window, _Told("", None, 0)) if window.dropped else None)
        return await self._summarized()

    async def _summarized(self) -> Fitted:
        window, most_tokens = await self._compute(self._window_with_room)
        if most_tokens is None:
            return Fitted(window.token_ids)
        # Without turns to leave out it is the earlier summary that is too long.
        told = await self._told(window, most_tokens) if window.dropped else _Told(self._chat.policy.summary, None, 0)
        placed, summary = await self._compute(lambda: self._placed(window, told.summary))
        if told.summary and not summary:
            told = replace(told, unsummarized=_messages(window))
        return Fitted(placed, self._report(window, replace(told, summary=summary)))

    def _window_with_room(self) -> tuple[Window, int | None]:
        """What fits beside a summary, and the most tokens of that; None where all fits with the earlier one in it."""
        chat, tokenizer, limit = self._chat, self._tokenizer, self._limit
        earlier = with_summary(chat, chat.policy.summary, tokenizer)
        whole: list[int] | None = None
        if tokenizer.least_tokens(earlier.size) <= limit:
            whole = earlier.token_ids(tokenizer)
            if len(whole) <= limit:
                return Window(earlier, whole), None
        frame, most_tokens = summary_frame(tokenizer), summary_room(limit)
        try:
            window = fitted(chat, tokenizer, limit - frame - most_tokens)
        except InvalidRequest as error:
            if error.reason != "CONTEXT_LENGTH_EXCEEDED":
                raise
            # A shorter summary, or none.
            window = fitted(chat, tokenizer, limit)
            most_tokens = limit - frame - len(window.token_ids)
        if whole is not None and window.dropped:
            kept = with_summary(window.chat, chat.policy.summary, tokenizer).token_ids(tokenizer)
            window = replace(window, dropped_tokens=max(0, len(whole) - len(kept)))
        return window, most_tokens

    async def _told(self, window: Window, most_tokens: int) -> _Told:
        """Have the model summarize what is left out, in as many questions as it takes, and count what that took."""
        summary = self._chat.policy.summary
        if most_tokens < LEAST_SUMMARY_TOKENS:
            return _Told(summary, None, _messages(window))
        turns = [[self._chat.messages[position] for position in turn] for turn in window.dropped]
        asking = Summarizing.of(self._chat, self._tokenizer, self._context_length, most_tokens)
        skipped = await self._compute(lambda: asking.newest(turns, summary, MOST_QUESTIONS))
        unsummarized = sum(map(len, turns[:skipped]))
        turns = turns[skipped:]
        usages: list[Usage] = []
        while turns:
            last = len(usages) == MOST_QUESTIONS - 1
            question = await self._compute(_asked(asking, turns, summary, last))
            if question is None:
                unsummarized += sum(map(len, turns))
                break
            written = await self._write(question.token_ids, most_tokens)
            usages.append(written.usage)
            asked, turns = turns[: question.turns], turns[question.turns :]
            unsummarized += question.unsummarized if written.text else sum(map(len, asked))
            summary = written.text or summary
        return _Told(summary, _total(usages), unsummarized)

    def _placed(self, window: Window, summary: str) -> tuple[list[int], str]:
        """The prompt with the summary, and what of the summary it holds: its beginning where it is too long."""
        for _ in range(_SHORTENINGS):
            if not summary:
                break
            token_ids = with_summary(window.chat, summary, self._tokenizer).token_ids(self._tokenizer)
            if (excess := len(token_ids) - self._limit) <= 0:
                return token_ids, summary
            own = self._tokenizer.encode(summary, False)
            summary = self._tokenizer.decode(own[: max(0, len(own) - excess)]).rstrip("\ufffd").rstrip()
        return window.token_ids, ""

    def _report(self, window: Window, told: _Told) -> ContextReport:
        return ContextReport(
            self._chat.policy.kind,
            _messages(window),
            window.dropped_tokens,
            told.summary,
            told.usage,
            told.unsummarized,
        )


def _asked(
    asking: Summarizing, turns: Sequence[Sequence[Message]], summary: str, last: bool
) -> Callable[[], Question | None]:
    return lambda: asking.next_question(turns, summary, last=last)


def _messages(window: Window) -> int:
    return sum(map(len, window.dropped))


def _total(usages: Sequence[Usage]) -> Usage | None:
    if not usages:
        return None
    return Usage(
        sum(usage.prompt_tokens for usage in usages),
        sum(usage.completion_tokens for usage in usages),
        sum(usage.cached_tokens for usage in usages),
        sum(usage.reasoning_tokens for usage in usages),
    )
