"""A request to generate, read from its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from services.tokenizer.output_stage import NewStage
from services.tokenizer.prompt import ChatOutput, Prompt
from services.tokenizer.prompt_detail import Echo
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_tokenizer import TextTokenizer

EngineRequest = TypeVar("EngineRequest")
"""The engine's own request message, which this tier's generations only hand on."""


@dataclass(frozen=True, slots=True)
class TextSpec(Generic[EngineRequest]):
    """A request to generate, read from its message."""

    request_id: str
    model: str
    prompt: Prompt
    n: int
    stops: StopStrings | None
    include_stop: bool
    skip_special_tokens: bool
    deadline_seconds: float | None
    engine_request: Callable[[list[int], int, float | None], EngineRequest]
    """Makes the engine's request of prompt ids, index of the choice and seconds left."""
    echo: Echo | None = None
    """Gives the prompt's text to be told at the start; None tells none."""
    prompt_logprobs: int | None = None
    """Number of alternatives told of each prompt token; None tells no log probabilities of the prompt."""
    complete: Callable[[TextTokenizer], None] | None = None
    """Completes what `engine_request` makes by what only the model's vocabulary tells. Called once, before it."""
    chat_output: ChatOutput | None = None
    """Of a chat: what its answer may hold beside content."""
    min_tokens: int = 0
    """Tokens within which no stop string ends a choice."""
    token_ids: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Ids that it names beside those of the prompt, by the field that holds them."""
    caller: str = ""
    """Name of the caller's key; empty without one."""
    stages: Sequence[NewStage] = ()
    """Stages that the request asks for, behind those of the filters."""
    max_tokens: int | None = None
    """Most tokens of a choice, as the request says; a chat that is cut to fit leaves room for them."""
    summary_request: Callable[[list[int], int, float | None], EngineRequest] | None = None
    """Makes the engine's request for a summary, greedy, of prompt ids, most tokens and seconds left. Chats only."""
