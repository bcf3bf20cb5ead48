"""Bounds of a request that hold for any model, in this tier, whoever calls."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer import limits_wire, wire
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

# Name, values at its bounds, values beyond them.
NUMBERS: list[tuple[str, list[Any], list[Any]]] = [
    ("temperature", [0.0, 2.0], [-1.0, 2.01, 1e9, math.nan, math.inf]),
    ("top_p", [1e-9, 1.0], [0.0, 1.1, math.nan]),
    ("top_k", [-1, 0, 2**31 - 1], [-2]),
    ("min_p", [0.0, 1.0], [-0.1, 1.1, math.nan]),
    ("presence_penalty", [-2.0, 2.0], [-2.1, 2.1, math.nan]),
    ("frequency_penalty", [-2.0, 2.0], [-2.1, 2.1, -math.inf]),
    ("repetition_penalty", [1e-9, 2.0], [0.0, -1.0, 2.1, math.nan]),
    ("max_tokens", [1, 2**32 - 1], [0]),
]


def refusal_of(check: Callable[[Any], None], message: Any) -> InvalidRequest:
    """The error that a message is refused with."""
    with pytest.raises(InvalidRequest) as refusal:
        check(message)
    assert "\n" not in refusal.value.message and len(refusal.value.message) < 200
    return refusal.value


def params_with(name: str, value: Any) -> sampling_pb2.SamplingParams:
    """Sampling parameters with one field set."""
    fields: dict[str, Any] = {name: value}
    return sampling_pb2.SamplingParams(**fields)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, good, _ in NUMBERS for value in good])
def test_bounds_are_allowed(name: str, value: Any) -> None:
    """Values at the bounds pass, and so do unset ones."""
    limits_wire.check_sampling(params_with(name, value))
    limits_wire.check_sampling(sampling_pb2.SamplingParams())


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, _, bad in NUMBERS for value in bad])
def test_values_beyond_the_bounds_are_refused(name: str, value: Any) -> None:
    """A value beyond its bounds, NaN too, is refused by its name."""
    error = refusal_of(limits_wire.check_sampling, params_with(name, value))
    assert error.param == name and name in error.message


def test_min_tokens_within_max_tokens() -> None:
    """min_tokens may reach max_tokens and not go beyond."""
    limits_wire.check_sampling(sampling_pb2.SamplingParams(min_tokens=8, max_tokens=8))
    bad = sampling_pb2.SamplingParams(min_tokens=9, max_tokens=8)
    assert refusal_of(limits_wire.check_sampling, bad).param == "min_tokens"


@pytest.mark.parametrize("value", [math.nan, 100.5, -math.inf])
def test_bias_values_are_bounded(value: float) -> None:
    """A bias is a number from -100 to 100; the refusal names the token."""
    limits_wire.check_sampling(sampling_pb2.SamplingParams(logit_bias={7: 100.0, 8: -100.0}))
    error = refusal_of(limits_wire.check_sampling, sampling_pb2.SamplingParams(logit_bias={7: value}))
    assert error.param == "logit_bias[7]"


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("stop_token_ids", limits_wire.MAX_TOKEN_ID_LIST),
        ("logit_bias", limits_wire.MAX_TOKEN_ID_LIST),
        ("allowed_token_ids", limits_wire.MAX_ALLOWED_TOKEN_IDS),
    ],
)
def test_lists_are_bounded(name: str, most: int) -> None:
    """Lists up to their limit pass; longer ones, such as 100,000 biases, are refused with both figures."""

    def with_count(count: int) -> sampling_pb2.SamplingParams:
        return params_with(name, dict.fromkeys(range(count), 1.0) if name == "logit_bias" else range(count))

    limits_wire.check_sampling(with_count(most))
    error = refusal_of(limits_wire.check_sampling, with_count(max(most + 1, 100_000)))
    assert error.param == name and str(most) in error.message


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"regex": "a" * 2**16}, {"regex": "a" * 100_000}),
        ({"json_schema_json": " " * 2**16}, {"json_schema_json": " " * 100_000}),
        (
            {"choice": sampling_pb2.StructuredOutput.Choices(values=["a" * 65] * 1000)},
            {"choice": sampling_pb2.StructuredOutput.Choices(values=["a"] * 1001)},
        ),
    ],
    ids=["regex", "schema", "choices"],
)
def test_constraints_are_bounded(good: dict[str, Any], bad: dict[str, Any]) -> None:
    """A constraint of 64 KiB passes, a larger one is refused before it is sent on once for each choice."""
    limits_wire.check_sampling(params_with("structured_output", sampling_pb2.StructuredOutput(**good)))
    too_large = params_with("structured_output", sampling_pb2.StructuredOutput(**bad))
    assert refusal_of(limits_wire.check_sampling, too_large).param == "structured_output"


def test_all_lists_at_their_limits_fit() -> None:
    """The bound on the whole takes all that the bounds on its parts allow, and refuses megabytes of unknown fields."""
    large = sampling_pb2.SamplingParams(
        allowed_token_ids=range(2**18 - limits_wire.MAX_ALLOWED_TOKEN_IDS, 2**18),
        stop_token_ids=range(2**18 - limits_wire.MAX_TOKEN_ID_LIST, 2**18),
        logit_bias=dict.fromkeys(range(2**18 - limits_wire.MAX_TOKEN_ID_LIST, 2**18), 1.0),
        structured_output=sampling_pb2.StructuredOutput(regex="a" * 2**16),
    )
    limits_wire.check_sampling(large)
    unknown = b"\xfa\x7f" + bytes([0xFF, 0xFF, 0xFF, 0x01]) + bytes(2**22 - 1)
    error = refusal_of(limits_wire.check_sampling, sampling_pb2.SamplingParams.FromString(unknown))
    assert error.param == "sampling_params"


@pytest.mark.parametrize(("name", "most"), [("request_id", 256), ("cache_salt", 256), ("traceparent", 512)])
def test_names_are_bounded(name: str, most: int) -> None:
    """What is passed on as it is has a bound of its own."""
    fields: dict[str, Any] = {name: "x" * most}
    limits_wire.check_names(text_pb2.GenerateRequest(**fields))
    fields[name] += "x"
    assert refusal_of(limits_wire.check_names, text_pb2.GenerateRequest(**fields)).param == name


def message(role: str = "user", **fields: Any) -> chat_pb2.ChatMessage:
    """A message."""
    return chat_pb2.ChatMessage(role=role, **({"text": "x"} | fields))


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([message()] * 10_000, "messages"),
        ([message(), message("root")], "messages[1].role"),
        ([message("")], "messages[0].role"),
        ([message("USER")], "messages[0].role"),
        (
            [
                chat_pb2.ChatMessage(
                    role="user", parts=chat_pb2.ContentParts(parts=[chat_pb2.ContentPart(text="x")] * 1025)
                )
            ],
            "messages[0].content",
        ),
        ([message("assistant", tool_calls=[chat_pb2.ToolCall(id="a", name="f")] * 129)], "messages[0].tool_calls"),
    ],
    ids=["10,000 messages", "unknown role", "no role", "role in capitals", "parts", "tool calls"],
)
def test_chats_are_bounded(messages: list[chat_pb2.ChatMessage], param: str) -> None:
    """Too much of anything and an unknown role are refused by name; all roles that there are pass."""
    limits_wire.check_chat(chat_pb2.ChatPrompt(messages=[message(role) for role in limits_wire.ROLES]))
    assert refusal_of(limits_wire.check_chat, chat_pb2.ChatPrompt(messages=messages)).param == param


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (text_pb2.GenerateRequest(sampling_params=params_with("temperature", math.nan)), "temperature"),
        (text_pb2.GenerateRequest(cache_salt="x" * 1000), "cache_salt"),
        (text_pb2.GenerateRequest(chat=chat_pb2.ChatPrompt(messages=[message("root")])), "messages[0].role"),
    ],
)
def test_every_generation_is_checked(request_: text_pb2.GenerateRequest, param: str) -> None:
    """Reading a request checks all of it, so that both Generate and the link do."""
    if request_.WhichOneof("prompt") is None:
        request_.text.text = "a"
    with pytest.raises(InvalidRequest) as refusal:
        wire.text_spec(request_)
    assert refusal.value.param == param


def test_ids_to_detokenize_are_bounded() -> None:
    """More ids than any answer has are refused before they are copied."""
    most = limits_wire.MAX_DETOKENIZED
    limits_wire.check_detokenize(text_pb2.DetokenizeRequest(token_ids=[1] * most))
    bad = text_pb2.DetokenizeRequest(token_ids=[1] * (most + 1))
    assert refusal_of(limits_wire.check_detokenize, bad).param == "token_ids"
