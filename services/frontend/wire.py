"""Between this tier's types and the protos'. Only clients and links see protos beside it."""

from __future__ import annotations

import dataclasses
from typing import Any

from services.frontend.chat_request import ChatRequest
from services.frontend.completion_request import CompletionRequest
from services.frontend.messages import Message
from services.frontend.models import Model, ModelState
from services.frontend.params import Sampling
from services.frontend.sink import Detail, Finished, FinishReason, Started, Usage
from streamomni.engine.v1 import models_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

_FINISH_REASONS: dict[int, FinishReason] = {
    sampling_pb2.FINISH_REASON_STOP: "stop",
    sampling_pb2.FINISH_REASON_LENGTH: "length",
    sampling_pb2.FINISH_REASON_CONTENT_FILTER: "content_filter",
    sampling_pb2.FINISH_REASON_TOOL_CALLS: "tool_calls",
}

_MODEL_STATES: dict[int, ModelState] = {
    models_pb2.MODEL_STATE_LOADING: ModelState.LOADING,
    models_pb2.MODEL_STATE_READY: ModelState.READY,
    models_pb2.MODEL_STATE_DRAINING: ModelState.DRAINING,
    models_pb2.MODEL_STATE_FAILED: ModelState.FAILED,
}


class BrokenPromise(Exception):
    """The text service sent what its protocol rules out."""


@dataclasses.dataclass(frozen=True, slots=True)
class CallInfo:
    """What goes with a request through all tiers. `deadline_ms`: time left for the whole."""

    request_id: str
    traceparent: str | None = None
    deadline_ms: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as it goes to a text service, and the name of the model that it asks for."""

    model: str
    message: text_pb2.GenerateRequest


def generate_request(request: ChatRequest | CompletionRequest, call: CallInfo) -> WireRequest:
    """Turn a valid request into the text service's."""
    output = request.output
    message = text_pb2.GenerateRequest(
        request_id=call.request_id,
        model=request.model,
        sampling_params=_sampling_params(request.sampling),
        n=output.n,
        stop=output.stop,
        include_stop_str_in_output=output.include_stop_str_in_output or False,
        skip_special_tokens=output.skip_special_tokens,
        deadline_ms=call.deadline_ms,
        traceparent=call.traceparent,
    )
    if isinstance(request, ChatRequest):
        message.chat.CopyFrom(_chat_prompt(request))
    elif isinstance(request.prompt, str):
        prompt = text_pb2.TextPrompt(text=request.prompt, add_special_tokens=request.add_special_tokens)
        message.text.CopyFrom(prompt)
    else:
        message.tokens.token_ids.extend(request.prompt)
    return WireRequest(request.model, message)


def _sampling_params(sampling: Sampling) -> sampling_pb2.SamplingParams:
    # The names are the same, so that a value cannot land in another's field.
    values: dict[str, Any] = {
        field.name: value
        for field in dataclasses.fields(sampling)
        if (value := getattr(sampling, field.name)) is not None
    }
    return sampling_pb2.SamplingParams(**values)


def _chat_prompt(request: ChatRequest) -> chat_pb2.ChatPrompt:
    return chat_pb2.ChatPrompt(
        messages=[_chat_message(message) for message in request.messages],
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=request.continue_final_message,
        chat_template_kwargs_json=request.chat_template_kwargs_json,
        reasoning_effort=request.reasoning_effort,
    )


def _chat_message(message: Message) -> chat_pb2.ChatMessage:
    sent = chat_pb2.ChatMessage(
        role=message.role,
        name=message.name,
        tool_calls=[
            chat_pb2.ToolCall(id=call.id, name=call.name, arguments_json=call.arguments_json)
            for call in message.tool_calls
        ],
        tool_call_id=message.tool_call_id,
        reasoning=message.reasoning,
    )
    if isinstance(message.content, str):
        sent.text = message.content
    elif message.content is not None:
        sent.parts.CopyFrom(chat_pb2.ContentParts(parts=[chat_pb2.ContentPart(text=text) for text in message.content]))
    return sent


def started_of(event: text_pb2.Started) -> Started:
    """Read a start."""
    return Started(event.prompt_tokens, event.cached_tokens, event.model)


def detail_of(event: text_pb2.EntryDetail) -> Detail:
    """Read what an entry has beside tokens and text.

    Raises:
        BrokenPromise: it has what no request of this tier asks for.
    """
    if event.tool_calls or event.HasField("logprobs"):
        raise BrokenPromise("tool calls or logprobs that nobody asked for")
    return Detail(event.reasoning)


def finished_of(event: text_pb2.Finished) -> Finished:
    """Read an end.

    Raises:
        BrokenPromise: it gives no reason.
    """
    reason = _FINISH_REASONS.get(event.reason)
    if reason is None:
        raise BrokenPromise(f"finish reason {event.reason} is unknown")
    matched: str | int | None = None
    if event.HasField("stop_string"):
        matched = event.stop_string
    elif event.HasField("stop_token_id"):
        matched = event.stop_token_id
    usage = Usage(
        event.usage.prompt_tokens,
        event.usage.completion_tokens,
        event.usage.cached_tokens,
        event.usage.reasoning_tokens,
    )
    return Finished(event.index, reason, matched, usage)


def model_of(model: models_pb2.Model) -> Model:
    """Read a model. One in a state that is unknown here cannot be asked for: it counts as failed."""
    state = _MODEL_STATES.get(model.state, ModelState.FAILED)
    return Model(model.name, state, model.created_unix_s, model.limits.context_length)
