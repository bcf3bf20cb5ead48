"""What an engine tells this tier, and what this tier tells its callers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from services.chassis.errors import ServiceError
from services.tokenizer.context_policy import ContextPolicyKind
from services.tokenizer.findings import FilterMatch, FormatFault
from services.tokenizer.logprobs import Logprobs, PromptLogprobs, TextLogprobs
from services.tokenizer.output_parsers.port import ToolCallPiece


class FinishReason(Enum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one choice."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int = 0
    """Those before the first token of the answer, tags and white space too; 0 without reasoning."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a choice."""

    reason: FinishReason
    matched_stop: str | int | None
    """Stop string or stop token id that ended it; None for the model's own end token."""
    usage: Usage
    filter_matches: Sequence[FilterMatch] = ()
    format_faults: Sequence[FormatFault] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a delta holds beside content: the next characters of the reasoning, the next pieces of tool calls, and what
    was found in this delta's text."""

    reasoning: str
    tool_calls: Sequence[ToolCallPiece]
    filter_matches: Sequence[FilterMatch] = ()
    format_faults: Sequence[FormatFault] = ()


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What was left out of a conversation to make it fit.

    Attributes:
        dropped_messages: number of messages left out, the oldest that are no system messages.
        dropped_tokens: prompt tokens that they would have taken.
        summary: of all that was left out, now and before; "" without.
        summary_usage: what writing it took, beside the usage of the choices; None: nothing was written.
        unsummarized_messages: those of dropped_messages that the summary holds in part or not at all.
    """

    policy: ContextPolicyKind
    dropped_messages: int
    dropped_tokens: int
    summary: str = ""
    summary_usage: Usage | None = None
    unsummarized_messages: int = 0


@dataclass(frozen=True, slots=True)
class PromptDetail:
    """What is told of the prompt beside its counts: what a caller asked for, None where it did not, and what was left
    out of it, None where nothing was."""

    text: str | None
    logprobs: PromptLogprobs | None
    context: ContextReport | None = None


class EngineSink(Protocol):
    """Takes the events of one engine stream, synchronously and in order."""

    def started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None = None) -> None:
        """The prompt is computed. First, once. Log probabilities are of the prompt's tokens from the second on."""

    def delta(self, token_ids: list[int], ends_with_stop: bool, logprobs: Logprobs | None = None) -> None:
        """The next tokens; with `ends_with_stop` the last is the end or stop token that ended the stream."""

    def finished(self, finish: Finish) -> None:
        """The stream ended."""

    def failed(self, error: ServiceError) -> None:
        """The stream is over with an error. Nothing follows."""


class TextSink(Protocol):
    """Takes the events of one text generation, synchronously and in order."""

    def started(self, model: str, prompt_tokens: int, cached_tokens: int, prompt: PromptDetail | None = None) -> None:
        """The prompt is computed. First, once."""

    def delta(
        self,
        index: int,
        token_ids: list[int],
        text: str,
        logprobs: TextLogprobs | None = None,
        parsed: Parsed | None = None,
    ) -> None:
        """The next piece of a choice: tokens taken in since its last delta, text, and what is told of the tokens."""

    def finished(self, index: int, finish: Finish) -> None:
        """A choice ended. Once for each choice."""

    def failed(self, error: ServiceError) -> None:
        """The generation is over with an error. Nothing follows."""
