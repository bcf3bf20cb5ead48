"""What an engine tells this tier, and what this tier tells its callers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from services.chassis.errors import ServiceError
from services.tokenizer.logprobs import Logprobs, PromptLogprobs, TextLogprobs
from services.tokenizer.output_parsers.port import ToolCallPiece


class FinishReason(Enum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"


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


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a delta holds beside content: the next characters of the reasoning, and the next pieces of tool calls."""

    reasoning: str
    tool_calls: Sequence[ToolCallPiece]


@dataclass(frozen=True, slots=True)
class PromptDetail:
    """What a caller asked to be told of the prompt; None is unasked."""

    text: str | None
    logprobs: PromptLogprobs | None


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
