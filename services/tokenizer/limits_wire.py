"""Bounds of requests that hold for any model, checked before a model is looked for.

Each choice is a request of its own at the engine, so what is wrong or large is refused here, once, and not sent on
as often as there are choices. What depends on the model, such as its vocabulary, is the engine's to check.
"""

from __future__ import annotations

from google.protobuf.message import Message

from services.chassis.errors import InvalidRequest
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_MESSAGES = 2048
MAX_PARTS = 1024
MAX_TOOL_CALLS = 128
MAX_TOKEN_ID_LIST = 1024
MAX_ALLOWED_TOKEN_IDS = 1 << 18
MAX_CONSTRAINT_BYTES = 64 * 1024
MAX_CONSTRAINT_CHOICES = 1000
MAX_DETOKENIZED = 1 << 20
"""Ids that are turned back into text in one call."""

# All lists at their limits.
_MAX_SAMPLING_BYTES = 2 * 1024 * 1024
_MAX_ID_CHARS = 256
# W3C's has 55; later versions of it may have more.
_MAX_TRACEPARENT_CHARS = 512
_RANGES = {
    "temperature": (0.0, 2.0),
    "min_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}
# Their low end is no value.
_OPEN_RANGES = {"top_p": (0.0, 1.0), "repetition_penalty": (0.0, 2.0)}


def check_names(request: text_pb2.GenerateRequest) -> None:
    """Check the lengths of what is passed on as it is.

    Raises:
        InvalidRequest: one is too long.
    """
    for name, most in (
        ("request_id", _MAX_ID_CHARS),
        ("cache_salt", _MAX_ID_CHARS),
        ("traceparent", _MAX_TRACEPARENT_CHARS),
    ):
        if len(getattr(request, name)) > most:
            raise InvalidRequest(f"{name} is longer than {most} characters; shorten it", param=name)


def check_sampling(params: sampling_pb2.SamplingParams) -> None:
    """Check how tokens are chosen.

    Raises:
        InvalidRequest: a number is out of range, or a list or constraint too large; `param` names the field.
    """
    for name, (low, high) in _RANGES.items():
        # A comparison with NaN is false, so NaN is refused as well.
        if not low <= getattr(params, name) <= high:
            raise _beyond(params, name, f"{low:g} to {high:g}")
    for name, (low, high) in _OPEN_RANGES.items():
        # Unset is 0 here too, which set it may not be.
        if not low < getattr(params, name) <= high and _is_set(params, name):
            raise _beyond(params, name, f"above {low:g} and at most {high:g}")
    if params.top_k < -1:
        raise _beyond(params, "top_k", "0 or -1 (all) and above")
    if params.HasField("max_tokens"):
        if params.max_tokens < 1:
            raise InvalidRequest("max_tokens is 0; at least 1 is allowed", param="max_tokens")
        if params.min_tokens > params.max_tokens:
            raise InvalidRequest(
                f"min_tokens is {params.min_tokens}, above max_tokens, {params.max_tokens}", param="min_tokens"
            )
    for name, most in (
        ("stop_token_ids", MAX_TOKEN_ID_LIST),
        ("logit_bias", MAX_TOKEN_ID_LIST),
        ("allowed_token_ids", MAX_ALLOWED_TOKEN_IDS),
    ):
        _check_count(name, len(getattr(params, name)), most)
    for token_id, bias in params.logit_bias.items():
        if not -100.0 <= bias <= 100.0:
            name = f"logit_bias[{token_id}]"
            raise InvalidRequest(f"{name} is {bias:g}; allowed are values -100 to 100", param=name)
    _check_constraint(params.structured_output)
    # Fields that only a newer service knows are sent on as well.
    if params.ByteSize() > _MAX_SAMPLING_BYTES:
        raise InvalidRequest(
            f"sampling_params has {params.ByteSize()} bytes; at most {_MAX_SAMPLING_BYTES} are allowed",
            param="sampling_params",
        )


def check_chat(chat: chat_pb2.ChatPrompt) -> None:
    """Check the roles and the numbers of things.

    Raises:
        InvalidRequest: a role is unknown, or there is too much of something.
    """
    _check_count("messages", len(chat.messages), MAX_MESSAGES)
    for position, message in enumerate(chat.messages):
        where = f"messages[{position}]"
        if message.role not in ROLES:
            raise InvalidRequest(f"{where}.role must be one of {', '.join(ROLES)}", param=f"{where}.role")
        _check_count(f"{where}.content", len(message.parts.parts), MAX_PARTS)
        _check_count(f"{where}.tool_calls", len(message.tool_calls), MAX_TOOL_CALLS)


def check_detokenize(request: text_pb2.DetokenizeRequest) -> None:
    """Check the number of ids.

    Raises:
        InvalidRequest: there are too many.
    """
    _check_count("token_ids", len(request.token_ids), MAX_DETOKENIZED)


def _check_constraint(constraint: sampling_pb2.StructuredOutput) -> None:
    choices = len(constraint.choice.values)
    # A message's size is what its text takes, and a few bytes more for each string.
    most = MAX_CONSTRAINT_BYTES + 8 * (choices + 1)
    if choices > MAX_CONSTRAINT_CHOICES or constraint.ByteSize() > most:
        raise InvalidRequest(
            f"the structured output has {constraint.ByteSize()} bytes and {choices} choices; at most"
            f" {MAX_CONSTRAINT_BYTES} and {MAX_CONSTRAINT_CHOICES} are allowed",
            param="structured_output",
        )


def _check_count(name: str, count: int, most: int) -> None:
    if count > most:
        raise InvalidRequest(f"{name} has {count} members; at most {most} are allowed", param=name)


def _is_set(message: Message, name: str) -> bool:
    return message.HasField(name)


def _beyond(params: Message, name: str, allowed: str) -> InvalidRequest:
    return InvalidRequest(f"{name} is {getattr(params, name):g}; allowed are values {allowed}", param=name)
