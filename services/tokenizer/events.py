"""What an engine tells this tier, and what this tier tells its callers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from services.chassis.errors import ServiceError


class FinishReason(Enum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one choice."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a choice."""

    reason: FinishReason
    matched_stop: str | int | None
    """Stop string or stop token id that ended it; None for the model's own end token."""
    usage: Usage


class EngineSink(Protocol):
    """Takes the events of one engine stream, synchronously and in order."""

    def started(self, prompt_tokens: int, cached_tokens: int) -> None:
        """The prompt is computed. First, once."""

    def delta(self, token_ids: list[int], ends_with_stop: bool) -> None:
        """The next tokens; with `ends_with_stop` the last is the end or stop token that ended the stream."""

    def finished(self, finish: Finish) -> None:
        """The stream ended."""

    def failed(self, error: ServiceError) -> None:
        """The stream is over with an error. Nothing follows."""


class TextSink(Protocol):
    """Takes the events of one text generation, synchronously and in order."""

    def started(self, model: str, prompt_tokens: int, cached_tokens: int) -> None:
        """The prompt is computed. First, once."""

    def delta(self, index: int, token_ids: list[int], text: str) -> None:
        """The next piece of a choice: tokens taken in since its last delta, and text."""

    def finished(self, index: int, finish: Finish) -> None:
        """A choice ended. Once for each choice."""

    def failed(self, error: ServiceError) -> None:
        """The generation is over with an error. Nothing follows."""
