"""Between this tier's types and the protos'. Only clients and links see protos beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from services.frontend import context_wire, findings_wire
from services.frontend.chat_request import ChatRequest
from services.frontend.completion_request import CompletionRequest
from services.frontend.logprobs import TokenLogprob
from services.frontend.messages import Message
from services.frontend.models import Model, ModelState
from services.frontend.params import Sampling
from services.frontend.sink import Detail, Finished, FinishReason, Started, Usage
from services.frontend.structured_output import StructuredOutput
from services.frontend.tool_calls import ToolCallPiece
from services.frontend.tools import ToolMode, Tools
from streamomni.engine.v1 import models_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

_FINISH_REASONS: dict[int, FinishReason] = {
    sampling_pb2.FINISH_REASON_STOP: "stop",
    sampling_pb2.FINISH_REASON_LENGTH: "length",
    sampling_pb2.FINISH_REASON_CONTENT_FILTER: "content_filter",
    sampling_pb2.FINISH_REASON_TOOL_CALLS: "tool_calls",
}

_TOOL_MODES: dict[ToolMode, chat_pb2.ToolChoice.Mode.ValueType] = {
    "none": chat_pb2.ToolChoice.MODE_NONE,
    "auto": chat_pb2.ToolChoice.MODE_AUTO,
    "required": chat_pb2.ToolChoice.MODE_REQUIRED,
    "function": chat_pb2.ToolChoice.MODE_FUNCTION,
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
    """What goes with a request through all tiers. `deadline_ms`: time left for the whole; `caller`: name of the key."""

    request_id: str
    traceparent: str | None = None
    deadline_ms: int | None = None
    caller: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class WireRequest:
    """A request as it goes to a text service, and the name of the model that it asks for."""

    model: str
    message: text_pb2.GenerateRequest


def generate_requests(request: ChatRequest | CompletionRequest, call: CallInfo) -> tuple[WireRequest, ...]:
    """Turn a valid request into the text service's: one for each prompt."""
    if isinstance(request, ChatRequest):
        message = _generate_request(request, call)
        message.chat.CopyFrom(_chat_prompt(request))
        return (WireRequest(request.model, message),)
    messages = []
    for prompt in request.prompts:
        message = _generate_request(request, call)
        message.echo = request.echo
        if isinstance(prompt, str):
            message.text.CopyFrom(
                text_pb2.TextPrompt(text=prompt, add_special_tokens=request.add_special_tokens, suffix=request.suffix)
            )
        else:
            message.tokens.token_ids.extend(prompt)
        messages.append(WireRequest(request.model, message))
    return tuple(messages)


def _generate_request(request: ChatRequest | CompletionRequest, call: CallInfo) -> text_pb2.GenerateRequest:
    output = request.output
    return text_pb2.GenerateRequest(
        request_id=call.request_id,
        model=request.model,
        sampling_params=_sampling_params(request.sampling),
        n=output.n,
        stop=output.stop,
        include_stop_str_in_output=output.include_stop_str_in_output or False,
        skip_special_tokens=output.skip_special_tokens,
        deadline_ms=call.deadline_ms,
        traceparent=call.traceparent,
        caller=call.caller,
        format_checks=findings_wire.format_checks(output.format_checks),
        stop_at_format_fault=output.stop_at_format_fault,
    )


def _sampling_params(sampling: Sampling) -> sampling_pb2.SamplingParams:
    # The names are the same, so that a value cannot land in another's field.
    values: dict[str, Any] = {
        field.name: value
        for field in dataclasses.fields(sampling)
        if (value := getattr(sampling, field.name)) is not None
    }
    structured_output = values.pop("structured_output", None)
    params = sampling_pb2.SamplingParams(**values)
    if structured_output is not None:
        params.structured_output.CopyFrom(_structured_output(structured_output))
    return params


def _structured_output(output: StructuredOutput) -> sampling_pb2.StructuredOutput:
    message = sampling_pb2.StructuredOutput()
    if output.kind == "json_object":
        message.json_object.SetInParent()
    elif output.kind == "choice":
        message.choice.values.extend(output.choices)
    else:
        setattr(message, output.kind, output.text)
    return message


def _chat_prompt(request: ChatRequest) -> chat_pb2.ChatPrompt:
    return chat_pb2.ChatPrompt(
        messages=[_chat_message(message) for message in request.messages],
        add_generation_prompt=request.add_generation_prompt,
        continue_final_message=request.continue_final_message,
        chat_template_kwargs_json=request.chat_template_kwargs_json,
        reasoning_effort=request.reasoning_effort,
        context_policy=context_wire.context_policy(request.context_policy, request.context_summary),
        **_tools(request.tools),
    )


def _tools(tools: Tools | None) -> dict[str, Any]:
    if tools is None:
        return {}
    return {
        "tools": [
            chat_pb2.Tool(
                name=tool.name,
                description=tool.description,
                parameters_json=tool.parameters_json,
                strict=tool.strict,
            )
            for tool in tools.tools
        ],
        "tool_choice": chat_pb2.ToolChoice(mode=_TOOL_MODES[tools.mode], function_name=tools.function or ""),
        "parallel_tool_calls": tools.parallel,
    }


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
    prompt_logprobs: Sequence[TokenLogprob] = ()
    if event.HasField("prompt_logprobs"):
        first = TokenLogprob(event.prompt_first_token_bytes, None, 0, ())
        prompt_logprobs = [first, *_logprobs_of(event.prompt_logprobs)]
    context = context_wire.context_report(event.context) if event.HasField("context") else None
    return Started(
        event.prompt_tokens, event.cached_tokens, event.model, event.prompt_text, prompt_logprobs, context=context
    )


def detail_of(event: text_pb2.EntryDetail) -> Detail:
    """Read what an entry has beside tokens and text."""
    return Detail(
        event.reasoning,
        _logprobs_of(event.logprobs) if event.HasField("logprobs") else (),
        tuple(_piece_of(piece) for piece in event.tool_calls),
        findings_wire.filter_matches(event.filter_matches),
        findings_wire.format_faults(event.format_faults),
    )


def _piece_of(piece: chat_pb2.ToolCallDelta) -> ToolCallPiece:
    return ToolCallPiece(
        piece.index,
        piece.arguments_json,
        piece.id if piece.HasField("id") else None,
        piece.name if piece.HasField("name") else None,
    )


def _logprobs_of(message: text_pb2.TextLogprobs) -> list[TokenLogprob]:
    numbers = message.logprobs
    count = numbers.top_count
    # Slices are lists, which are faster to go through than what protobuf gives.
    tops = list(zip(message.top_token_bytes[:], numbers.top_logprobs[:], strict=True))
    columns = zip(message.token_bytes[:], numbers.logprobs[:], message.text_offsets[:], strict=True)
    return [
        TokenLogprob(token, logprob, text_offset, tops[position * count : (position + 1) * count])
        for position, (token, logprob, text_offset) in enumerate(columns)
    ]


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
    matches = findings_wire.filter_matches(event.filter_matches)
    faults = findings_wire.format_faults(event.format_faults)
    return Finished(event.index, reason, matched, usage, matches, faults)


def model_of(model: models_pb2.Model) -> Model:
    """Read a model. One in a state that is unknown here cannot be asked for: it counts as failed."""
    state = _MODEL_STATES.get(model.state, ModelState.FAILED)
    return Model(model.name, state, model.created_unix_s, model.limits.context_length)
