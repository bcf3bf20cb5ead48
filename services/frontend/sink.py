"""What a generation tells the one who asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from services.frontend.context_policy import ContextReport
from services.frontend.findings import FilterMatch, FormatFault
from services.frontend.logprobs import TokenLogprob
from services.frontend.tool_calls import ToolCallPiece

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Started:
    """The engine has taken the prompt: its tokens, those of them found in the cache, the model's name.

    The prompt's text and log probabilities are there where they were asked for. `first_choice` is the lowest of this
    prompt's choices among those of all prompts. `context` tells what was left out of a chat; None: nothing.
    """

    prompt_tokens: int
    cached_tokens: int
    model: str
    prompt_text: str = ""
    prompt_logprobs: Sequence[TokenLogprob] = ()
    first_choice: int = 0
    context: ContextReport | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """What a delta may have beside tokens and text: the next characters of the reasoning, log probabilities of the
    delta's tokens, the next pieces of tool calls, and what filters and format checks found in this delta."""

    reasoning: str
    logprobs: Sequence[TokenLogprob] = ()
    tool_calls: Sequence[ToolCallPiece] = ()
    filter_matches: Sequence[FilterMatch] = ()
    format_faults: Sequence[FormatFault] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. `cached_tokens` are among the prompt's, `reasoning_tokens` among the completion's."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a choice; `matched_stop` is the stop string or stop token id that caused it, if one did.

    Here is all again that filters and format checks found in the choice.
    """

    index: int
    reason: FinishReason
    matched_stop: str | int | None
    usage: Usage
    filter_matches: Sequence[FilterMatch] = ()
    format_faults: Sequence[FormatFault] = ()


class Sink(Protocol):
    """Takes a generation's events, synchronously and in order.

    `started` comes first, once for each prompt; then deltas; `finished` once for each choice.
    `failed` may come at any time instead of what is missing. After the last
    `finished`, and after `failed`, nothing comes.
    """

    def started(self, started: Started) -> None:
        """Take the start."""

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        """Take the next piece of a choice.

        Returns: False when the reader is too slow for what comes. The generation
        is then cancelled and fails.
        """

    def finished(self, finished: Finished) -> None:
        """Take the end of a choice."""

    def failed(self, error: Exception) -> None:
        """Take the end of the whole: a `ServiceError`, or `ClientGone`."""


class TellingSink(Sink, Protocol):
    """A sink whose first event, or whole answer, tells more than OpenAI's shapes have: members that are put here before
    the start."""

    members: dict[str, Any]


def total(usages: Sequence[Usage]) -> Usage:
    """Return the usage of a generation from those of its choices, at least one: the prompt counts once."""
    return Usage(
        prompt_tokens=usages[0].prompt_tokens,
        completion_tokens=sum(usage.completion_tokens for usage in usages),
        cached_tokens=max(usage.cached_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
    )
