"""Protobuf messages to and from the tier's own types."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from services.chassis.errors import InvalidRequest, ServiceError, Unsupported
from services.chassis.status import status_of
from services.tokenizer import findings_wire
from services.tokenizer.context_wire import context_policy
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.fill_in_the_middle import FillInTheMiddlePrompt, end_token_ids
from services.tokenizer.format_checks.format_wire import format_stages
from services.tokenizer.limits_wire import check_chat, check_names, check_sampling
from services.tokenizer.prompt import ChatOutput, ChatPrompt, Prompt, TextPrompt, TokenPrompt
from services.tokenizer.prompt_detail import Echo
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_spec import TextSpec
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tool_use import ToolMode
from services.tokenizer.tools_wire import check_tool_results, tool_use
from streamomni.engine.v1 import engine_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

_REASON_OF_MESSAGE = {
    sampling_pb2.FINISH_REASON_STOP: FinishReason.STOP,
    sampling_pb2.FINISH_REASON_LENGTH: FinishReason.LENGTH,
    sampling_pb2.FINISH_REASON_TOOL_CALLS: FinishReason.TOOL_CALLS,
}
_MESSAGE_OF_REASON = {reason: message for message, reason in _REASON_OF_MESSAGE.items()} | {
    # No engine filters text, so none may give this reason.
    FinishReason.CONTENT_FILTER: sampling_pb2.FINISH_REASON_CONTENT_FILTER,
}


def text_spec(request: text_pb2.GenerateRequest) -> TextSpec[engine_pb2.GenerateRequest]:
    """Read a request.

    Raises:
        InvalidRequest: a field is malformed.
        Unsupported: it asks for what is not built.
    """
    check_names(request)
    if not request.request_id:
        request.request_id = f"req-{uuid.uuid4().hex}"
    chat_output = _chat_output(request)
    check_sampling(request.sampling_params)
    return TextSpec(
        request_id=request.request_id,
        model=request.model,
        prompt=_prompt(request),
        n=request.n if request.HasField("n") else 1,
        stops=StopStrings(request.stop) if request.stop else None,
        include_stop=request.include_stop_str_in_output,
        skip_special_tokens=_optional(request, "skip_special_tokens", True),
        deadline_seconds=request.deadline_ms / 1000 if request.HasField("deadline_ms") else None,
        engine_request=lambda ids, index, seconds: _engine_request(request, ids, index, seconds),
        echo=_echo(request),
        prompt_logprobs=_optional(request.sampling_params, "prompt_logprobs", None),
        complete=(lambda tokenizer: _add_fill_ends(request, tokenizer)) if request.text.HasField("suffix") else None,
        chat_output=chat_output,
        min_tokens=request.sampling_params.min_tokens,
        token_ids={
            name: list(getattr(request.sampling_params, name))
            for name in ("stop_token_ids", "allowed_token_ids", "logit_bias")
        },
        caller=request.caller,
        stages=format_stages(request),
        max_tokens=_optional(request.sampling_params, "max_tokens", None),
        summary_request=lambda ids, most_tokens, seconds: _summary_request(request, ids, most_tokens, seconds),
    )


def chat_prompt(chat: chat_pb2.ChatPrompt) -> ChatPrompt:
    """Read a conversation.

    Raises:
        InvalidRequest: a field is malformed.
        Unsupported: it asks for what is not built.
    """
    check_chat(chat)
    check_tool_results(chat)
    continues = chat.continue_final_message
    return ChatPrompt(
        messages=[_message(message) for message in chat.messages],
        add_generation_prompt=_optional(chat, "add_generation_prompt", not continues),
        continue_final_message=continues,
        template_variables=_template_variables(chat),
        size=chat.ByteSize(),
        tools=tool_use(chat).template_objects,
        policy=context_policy(chat.context_policy),
    )


def finish_of(message: engine_pb2.Finished) -> Finish:
    """The end of an engine's stream."""
    return Finish(
        _REASON_OF_MESSAGE[message.reason],
        message.stop_token_id if message.HasField("stop_token_id") else None,
        Usage(message.usage.prompt_tokens, message.usage.completion_tokens, message.usage.cached_tokens),
    )


def finished(index: int, finish: Finish) -> text_pb2.Finished:
    """The event that a choice ended."""
    message = text_pb2.Finished(
        index=index,
        reason=_MESSAGE_OF_REASON[finish.reason],
        usage=sampling_pb2.Usage(
            prompt_tokens=finish.usage.prompt_tokens,
            completion_tokens=finish.usage.completion_tokens,
            cached_tokens=finish.usage.cached_tokens,
            reasoning_tokens=finish.usage.reasoning_tokens,
        ),
        filter_matches=findings_wire.filter_matches(finish.filter_matches),
        format_faults=findings_wire.format_faults(finish.format_faults),
    )
    if isinstance(finish.matched_stop, str):
        message.stop_string = finish.matched_stop
    elif finish.matched_stop is not None:
        message.stop_token_id = finish.matched_stop
    return message


def failed(stream_id: int, error: ServiceError) -> text_pb2.StreamEvent:
    """The link's event that a generation failed."""
    return text_pb2.StreamEvent(stream_id=stream_id, failed=status_of(error))


def _chat_output(request: text_pb2.GenerateRequest) -> ChatOutput | None:
    """What a chat's answer may hold; where it must hold calls, the engine is asked to see to it."""
    if request.WhichOneof("prompt") != "chat":
        return None
    tools, params = tool_use(request.chat), request.sampling_params
    if tools.mode is not ToolMode.NONE and params.HasField("structured_output"):
        raise Unsupported(
            "structured output and tools in one request are not supported; leave one of them out, or set tool_choice"
            " to none",
            param="structured_output",
        )
    if params.HasField("structured_output"):
        # It holds from the first token on, so that the output is nothing but content.
        return None
    schema = tools.json_schema()
    if schema is not None:
        params.structured_output.json_schema_json = schema
    return ChatOutput(tools, _continued(request.chat))


def _continued(chat: chat_pb2.ChatPrompt) -> str:
    if not chat.continue_final_message or not chat.messages:
        return ""
    last = chat.messages[-1]
    return last.text or "\n".join(part.text for part in last.parts.parts)


def _add_fill_ends(request: text_pb2.GenerateRequest, tokenizer: TextTokenizer) -> None:
    request.sampling_params.stop_token_ids.extend(end_token_ids(tokenizer.table.added_tokens))


def _echo(request: text_pb2.GenerateRequest) -> Echo | None:
    if not request.echo:
        return None
    kind = request.WhichOneof("prompt")
    if kind == "chat":
        raise InvalidRequest("echo is for prompts of text and token ids, not for chats; leave it unset", param="echo")
    if kind == "tokens":
        skip_special_tokens = _optional(request, "skip_special_tokens", True)
        return lambda tokenizer, ids: tokenizer.decode(ids, skip_special_tokens)
    if request.text.HasField("suffix"):
        raise InvalidRequest("echo and suffix exclude each other; set one of them", param="echo")
    text = request.text.text
    return lambda tokenizer, ids: text


def _prompt(request: text_pb2.GenerateRequest) -> Prompt:
    kind = request.WhichOneof("prompt")
    if kind == "text":
        add_special_tokens = _optional(request.text, "add_special_tokens", True)
        if request.text.HasField("suffix"):
            return FillInTheMiddlePrompt(request.text.text, request.text.suffix, add_special_tokens)
        return TextPrompt(request.text.text, add_special_tokens)
    if kind == "tokens":
        return TokenPrompt(request.tokens.token_ids)
    if kind == "chat":
        return chat_prompt(request.chat)
    raise InvalidRequest("there is no prompt; set one of text, tokens and chat", param="prompt")


def _message(message: chat_pb2.ChatMessage) -> Mapping[str, object]:
    """OpenAI's message object, as chat templates read it."""
    result: dict[str, object] = {"role": message.role, "content": _content(message)}
    for name in ("name", "tool_call_id"):
        if message.HasField(name):
            result[name] = getattr(message, name)
    if message.HasField("reasoning"):
        # Templates know either name.
        result["reasoning"] = result["reasoning_content"] = message.reasoning
    if message.tool_calls:
        result["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
            for call in message.tool_calls
        ]
    return result


def _content(message: chat_pb2.ChatMessage) -> object:
    kind = message.WhichOneof("content")
    if kind == "text":
        return message.text
    if kind == "parts":
        return [
            {"type": "text", "text": part.text} if part.HasField("text") else {"type": part.media.type}
            for part in message.parts.parts
        ]
    return None


def _template_variables(chat: chat_pb2.ChatPrompt) -> Mapping[str, object]:
    variables: dict[str, object] = {}
    if chat.HasField("chat_template_kwargs_json"):
        try:
            given = json.loads(chat.chat_template_kwargs_json)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            raise InvalidRequest("chat_template_kwargs is not a JSON object; send one", param="chat_template_kwargs")
        variables.update(given)
    if chat.HasField("reasoning_effort"):
        variables["reasoning_effort"] = chat.reasoning_effort
    return variables


def _engine_request(
    request: text_pb2.GenerateRequest, prompt_token_ids: list[int], index: int, seconds_left: float | None
) -> engine_pb2.GenerateRequest:
    engine_request = engine_pb2.GenerateRequest(
        request_id=request.request_id,
        model=request.model,
        prompt_token_ids=prompt_token_ids,
        sampling_params=request.sampling_params,
    )
    if index and request.sampling_params.HasField("seed"):
        # Choices must not share their random numbers; wraps at the end of the 64-bit range.
        seed = request.sampling_params.seed + index
        engine_request.sampling_params.seed = (seed + 2**63) % 2**64 - 2**63
    _pass_on(request, engine_request, seconds_left)
    return engine_request


def _summary_request(
    request: text_pb2.GenerateRequest, prompt_token_ids: list[int], most_tokens: int, seconds_left: float | None
) -> engine_pb2.GenerateRequest:
    engine_request = engine_pb2.GenerateRequest(
        request_id=request.request_id,
        model=request.model,
        prompt_token_ids=prompt_token_ids,
        # The caller's own ways to choose tokens are for the answer.
        sampling_params=sampling_pb2.SamplingParams(temperature=0, max_tokens=most_tokens),
    )
    _pass_on(request, engine_request, seconds_left)
    return engine_request


def _pass_on(
    request: text_pb2.GenerateRequest, engine_request: engine_pb2.GenerateRequest, seconds_left: float | None
) -> None:
    for name in ("priority", "cache_salt", "lora_name", "traceparent"):
        if request.HasField(name):
            setattr(engine_request, name, getattr(request, name))
    if seconds_left is not None:
        # Rounding must not pass the end of the field's range.
        engine_request.deadline_ms = min(round(seconds_left * 1000), request.deadline_ms)


def _optional(message: Message, name: str, default: Any) -> Any:
    return getattr(message, name) if message.HasField(name) else default
