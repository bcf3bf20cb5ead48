"""The port between the tier and the library that runs the model.

One module implements it for vLLM (`vllm_adapter`). A contract suite holds it
to what is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from services.engine.structured_output import StructuredOutput


class FinishReason(Enum):
    """Why a choice ended."""

    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Limits:
    """What requests may ask of a model."""

    context_length: int
    """Most tokens of prompt and output together."""
    vocab_size: int
    """Number of token ids; valid ids are below it."""
    max_logprobs: int
    """Most alternatives of log probabilities a token."""
    supports_priority: bool
    """Whether requests are scheduled by priority."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen. None means the model's own default."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_token_ids: tuple[int, ...] = ()
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    structured_output: StructuredOutput | None = None

    def for_choice(self, index: int) -> Sampling:
        """The same for one of several choices, which must not share their random numbers."""
        if self.seed is None or index == 0:
            return self
        # Wraps at the end of the 64-bit range.
        return replace(self, seed=(self.seed + index + 2**63) % 2**64 - 2**63)


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One choice to generate."""

    request_id: str
    """Unique among the engine's live requests."""
    prompt_token_ids: Sequence[int]
    sampling: Sampling
    priority: int = 0
    cache_salt: str | None = None
    traceparent: str | None = None
    constraint: object | None = None
    """What `Engine.compile` made of the sampling's structured output."""


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Log probabilities of a run of tokens, in columns; row-major where k wide."""

    logprobs: list[float]
    ranks: list[int]
    top_count: int
    top_token_ids: list[int]
    top_logprobs: list[float]


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a choice."""

    reason: FinishReason
    stop_token_id: int | None = None
    """The member of the request's stop_token_ids that ended it."""


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt is computed."""

    cached_tokens: int
    """Prompt tokens found in the prefix cache."""
    prompt_logprobs: Logprobs | None = None


@dataclass(slots=True)
class Output:
    """What one step gave one request.

    One is made for each token, and a frozen dataclass takes 1 µs longer to make; treat it as one all the same.
    """

    request_id: str
    token_ids: list[int]
    prefilled: Prefilled | None = None
    """Set in the request's first output."""
    logprobs: Logprobs | None = None
    finish: Finish | None = None
    """Set in the last."""
    failed: bool = False
    """The engine gave this request up; nothing more comes."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the engine works on."""

    running: int
    waiting: int
    kv_cache_usage: float
    """Share of the KV cache in use, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of the engine gave all requests."""

    outputs: Sequence[Output]
    load: Load | None
    """None: as before."""


class EngineDead(Exception):
    """The engine is gone with all its requests. The text is one line."""


class Engine(Protocol):
    """A loaded model."""

    @property
    def limits(self) -> Limits:
        """What requests may ask."""

    async def compile(self, output: StructuredOutput) -> object:
        """Make what a request with this structured output carries as its `constraint`.

        It answers within about a second, and what it lets pass can neither hold up nor end the engine.

        Raises:
            InvalidRequest: it cannot be compiled, or takes too long.
            Unsupported: the engine's configuration does not allow it.
            Overloaded: too many are being compiled.
        """

    def add(self, request: EngineRequest) -> None:
        """Queue a request that was checked against `limits`; its output comes through `run`.

        Raises:
            InvalidRequest: the library refuses it. Nothing was queued.
        """

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests, always after their `add`. No output comes of them afterwards
        but what is under way. Unknown and ended ones are left alone."""

    async def run(self, on_step: Callable[[Step], None]) -> None:
        """Call `on_step` after each step of the engine, until cancelled.

        Raises:
            EngineDead: the engine died.
        """


class EngineLoader(Protocol):
    """Knows a model and can load it, again and again."""

    @property
    def tokenizer_directory(self) -> Path:
        """Where the model's tokenizer files lie. Valid once `load` was entered."""

    def load(self) -> AbstractAsyncContextManager[Engine]:
        """Load the model; leaving the block frees all it holds.

        Raises:
            EngineDead: it cannot be loaded; the text says why.
        """
