"""OpenAI's JSON shapes.

https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

from services.frontend.findings import finding_objects
from services.frontend.logprobs import TokenLogprob, chat_logprobs, completion_logprobs
from services.frontend.models import Model
from services.frontend.sink import Finished, Usage
from services.frontend.tool_calls import ToolCallPiece, piece_objects, whole_objects


@dataclass(frozen=True, slots=True)
class Answer:
    """What all parts of one answer have in common. `created` is Unix time in seconds."""

    id: str
    created: int
    model: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A whole choice of an answer that is not streamed. `logprobs` is empty where nobody asked for them."""

    text: str
    reasoning: str
    finished: Finished
    logprobs: Sequence[TokenLogprob] = ()
    tool_calls: Sequence[ToolCallPiece] = ()


def new_id(prefix: str) -> str:
    """Return an answer's id: `chatcmpl-…` or `cmpl-…`."""
    return f"{prefix}-{uuid.uuid4().hex}"


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return the usage object."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def model_object(model: Model) -> dict[str, Any]:
    """Return a model of the list of models."""
    return {
        "id": model.name,
        "object": "model",
        "created": model.created_unix_s,
        "owned_by": "stream-omni",
        "max_model_len": model.context_length,
    }


class Shape(ABC):
    """The shapes of one endpoint's answers."""

    id_prefix: ClassVar[str]
    object_name: ClassVar[str]
    chunk_object_name: ClassVar[str]

    @abstractmethod
    def whole_choice(self, choice: Choice) -> dict[str, Any]:
        """Return a choice of an answer that is not streamed."""

    @abstractmethod
    def opening(self, index: int) -> dict[str, Any] | None:
        """Return the choice that begins a stream, if this endpoint has one."""

    @abstractmethod
    def piece(self, index: int, text: str) -> dict[str, Any]:
        """Return the choice of a chunk with text."""

    @abstractmethod
    def reasoning_piece(self, index: int, reasoning: str) -> dict[str, Any]:
        """Return the choice of a chunk with reasoning."""

    def tool_calls_piece(self, index: int, pieces: Sequence[ToolCallPiece]) -> dict[str, Any]:
        """Return the choice of a chunk with pieces of tool calls.

        Raises:
            TypeError: this endpoint's answers have no tool calls.
        """
        raise TypeError(f"{self.object_name} has no tool calls")

    @abstractmethod
    def logprobs(self, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return the `logprobs` object of a choice, whole or of a chunk."""

    @abstractmethod
    def closing(self, finished: Finished) -> dict[str, Any]:
        """Return the choice that ends a stream."""

    def whole(
        self, answer: Answer, choices: Sequence[Choice], usage: Usage, members: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return an answer that is not streamed, as JSON, with more members of its object behind the others."""
        return orjson.dumps(
            {
                "id": answer.id,
                "object": self.object_name,
                "created": answer.created,
                "model": answer.model,
                "choices": [self.whole_choice(choice) for choice in choices],
                "usage": usage_object(usage),
                **(members or {}),
            }
        )


class ChatShape(Shape):
    """/v1/chat/completions."""

    id_prefix = "chatcmpl"
    object_name = "chat.completion"
    chunk_object_name = "chat.completion.chunk"

    def whole_choice(self, choice: Choice) -> dict[str, Any]:
        """Return a choice with its message."""
        message: dict[str, Any] = {"role": "assistant", "content": choice.text, "refusal": None}
        if choice.tool_calls:
            message |= {"content": choice.text or None, "tool_calls": whole_objects(choice.tool_calls)}
        return {
            "index": choice.finished.index,
            "message": message | _reasoning(choice.reasoning),
            "logprobs": self.logprobs(choice.logprobs) if choice.logprobs else None,
            **_end(choice.finished),
        }

    def opening(self, index: int) -> dict[str, Any]:
        """Return the choice that tells the role."""
        return self._chunk(index, {"role": "assistant", "content": ""})

    def piece(self, index: int, text: str) -> dict[str, Any]:
        """Return a delta of text."""
        return self._chunk(index, {"content": text})

    def reasoning_piece(self, index: int, reasoning: str) -> dict[str, Any]:
        """Return a delta of reasoning."""
        return self._chunk(index, _reasoning(reasoning))

    def tool_calls_piece(self, index: int, pieces: Sequence[ToolCallPiece]) -> dict[str, Any]:
        """Return a delta of tool calls."""
        return self._chunk(index, {"tool_calls": piece_objects(pieces)})

    def logprobs(self, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return a list of objects, one a token."""
        return chat_logprobs(tokens)

    def closing(self, finished: Finished) -> dict[str, Any]:
        """Return an empty delta with the finish reason."""
        return self._chunk(finished.index, {}) | _end(finished)

    def _chunk(self, index: int, delta: dict[str, Any]) -> dict[str, Any]:
        return {"index": index, "delta": delta, "finish_reason": None}


class CompletionShape(Shape):
    """/v1/completions."""

    id_prefix = "cmpl"
    object_name = "text_completion"
    chunk_object_name = "text_completion"

    def whole_choice(self, choice: Choice) -> dict[str, Any]:
        """Return a choice with its text. Reasoning is part of it: a completion has no other place."""
        whole = self.piece(choice.finished.index, choice.reasoning + choice.text) | _end(choice.finished)
        if choice.logprobs:
            whole["logprobs"] = self.logprobs(choice.logprobs)
        return whole

    def opening(self, index: int) -> None:
        """Return None: a completion begins with its text."""

    def piece(self, index: int, text: str) -> dict[str, Any]:
        """Return a piece of text."""
        return {"index": index, "text": text, "logprobs": None, "finish_reason": None}

    def reasoning_piece(self, index: int, reasoning: str) -> dict[str, Any]:
        """Return a piece of text: a completion has no other place for reasoning."""
        return self.piece(index, reasoning)

    def logprobs(self, tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
        """Return columns."""
        return completion_logprobs(tokens)

    def closing(self, finished: Finished) -> dict[str, Any]:
        """Return an empty text with the finish reason."""
        return self.piece(finished.index, "") | _end(finished)


def _end(finished: Finished) -> dict[str, Any]:
    end: dict[str, Any] = {"finish_reason": finished.reason}
    if finished.matched_stop is not None:
        # vLLM's name for the stop string or stop token id that ended the choice.
        end["stop_reason"] = finished.matched_stop
    return end | finding_objects(finished.filter_matches, finished.format_faults)


def _reasoning(reasoning: str) -> dict[str, Any]:
    # Both spellings are read in the wild.
    return {"reasoning": reasoning, "reasoning_content": reasoning} if reasoning else {}
