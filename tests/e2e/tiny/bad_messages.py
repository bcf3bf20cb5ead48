"""Bad input over gRPC, one row for each kind, for the engine's port and the tokenizer's."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc

from streamomni.engine.v1 import engine_pb2, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.e2e.differential.bad_requests import CONTEXT, VOCABULARY
from tests.e2e.tiny.test_bad_structured_output import RECURSIVE

INVALID, NOT_FOUND, UNIMPLEMENTED = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
)
LAST_UINT32 = 2**32 - 1


@dataclass(frozen=True)
class BadMessage:
    """A message, the code it gets, and the field that its details name."""

    message: Any
    code: grpc.StatusCode
    field: str


# Fields of the sampling parameters, which both services share.
SAMPLING: list[tuple[dict[str, Any], str]] = [
    *(({"temperature": value}, "temperature") for value in (-1.0, math.nan, math.inf, 1e9)),
    *(({"top_p": value}, "top_p") for value in (0.0, 1.1, math.nan)),
    *(({"min_p": value}, "min_p") for value in (-0.1, 1.1, math.nan)),
    *(({"presence_penalty": value}, "presence_penalty") for value in (-2.1, 2.1, math.nan)),
    *(({"frequency_penalty": value}, "frequency_penalty") for value in (-2.1, 2.1, -math.inf)),
    *(({"repetition_penalty": value}, "repetition_penalty") for value in (0.0, -1.0, 2.1, math.nan)),
    ({"top_k": -2}, "top_k"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"max_tokens": CONTEXT + 1}, "max_tokens"),
    ({"max_tokens": LAST_UINT32}, "max_tokens"),
    ({"min_tokens": 6, "max_tokens": 5}, "min_tokens"),
    ({"min_tokens": LAST_UINT32}, "min_tokens"),
    ({"logprobs": 21}, "logprobs"),
    ({"prompt_logprobs": LAST_UINT32}, "prompt_logprobs"),
    *(({"stop_token_ids": ids}, "stop_token_ids") for ids in ([VOCABULARY], [LAST_UINT32], [1] * 100_000)),
    *(({"allowed_token_ids": ids}, "allowed_token_ids") for ids in ([VOCABULARY], [1] * 300_000)),
    ({"logit_bias": {VOCABULARY: 1.0}}, "logit_bias"),
    ({"logit_bias": dict.fromkeys(range(100_000), 1.0)}, "logit_bias"),
    *(({"logit_bias": {5: value}}, "logit_bias[5]") for value in (100.1, math.nan, -math.inf)),
    *(
        ({"structured_output": sampling_pb2.StructuredOutput(**constraint)}, "structured_output")
        for constraint in (
            {},
            {"regex": "(a"},
            {"regex": ""},
            {"regex": "a" * 100_000},
            {"regex": "((a{100}){100}){100}"},
            {"json_schema_json": "{"},
            {"json_schema_json": "[" * 10_000},
            {"json_schema_json": '{"type": "strnig"}'},
            {"json_schema_json": json.dumps(RECURSIVE)},
            {"json_schema_json": '{"type": "array", "minItems": 1000000000}'},
            {"grammar": "root ::= ("},
            {"structural_tag_json": "5"},
            {"choice": sampling_pb2.StructuredOutput.Choices()},
            {"choice": sampling_pb2.StructuredOutput.Choices(values=["a"] * 10_000)},
        )
    ),
]
# Beside a good prompt, where both requests have the same fields.
SHARED: list[tuple[dict[str, Any], grpc.StatusCode, str]] = [
    *(({"model": name}, NOT_FOUND, "model") for name in ("unknown", "../../x", "http://127.0.0.1:9/x", "x" * 100_000)),
    *(({"n": n}, INVALID, "n") for n in (0, 129, 16384, LAST_UINT32)),
    ({"lora_name": "adapter"}, UNIMPLEMENTED, "lora_name"),
    ({"priority": 7}, UNIMPLEMENTED, "priority"),
    ({"request_id": "x" * 257}, INVALID, "request_id"),
    ({"cache_salt": "x" * 1_000_000}, INVALID, "cache_salt"),
    ({"traceparent": "x" * 1_000_000}, INVALID, "traceparent"),
]


def _chat(*messages: chat_pb2.ChatMessage, **fields: Any) -> chat_pb2.ChatPrompt:
    return chat_pb2.ChatPrompt(messages=messages, **fields)


def _message(role: str = "user", **fields: Any) -> chat_pb2.ChatMessage:
    return chat_pb2.ChatMessage(role=role, **(fields or {"text": "Hi"}))


_MEDIA = chat_pb2.ContentPart(media=chat_pb2.MediaPart(type="image_url", url="http://127.0.0.1:9/x"))
CHATS: list[tuple[chat_pb2.ChatPrompt, str]] = [
    (_chat(), "messages"),
    (_chat(*[_message()] * 10_000), "messages"),
    (_chat(_message("root")), "messages[0].role"),
    (_chat(_message("")), "messages[0].role"),
    (_chat(chat_pb2.ChatMessage(role="user")), "messages[0].content"),
    (_chat(_message("tool", text="4", tool_call_id="nobody")), "messages[0].tool_call_id"),
    (_chat(_message(parts=chat_pb2.ContentParts(parts=[_MEDIA]))), "messages[0].content[0]"),
    (_chat(_message(), chat_template_kwargs_json='{"chat_template": "x"}'), "chat_template_kwargs"),
    (_chat(_message(), chat_template_kwargs_json="[" * 10_000), "chat_template_kwargs"),
    (_chat(_message(), continue_final_message=True, add_generation_prompt=True), "continue_final_message"),
    (_chat(_message(), tool_choice=chat_pb2.ToolChoice(mode=chat_pb2.ToolChoice.MODE_REQUIRED)), "tool_choice"),
    (_chat(_message(), tools=[chat_pb2.Tool(name="f", parameters_json="{")]), "tools[0].parameters"),
    (_chat(_message(), tools=[chat_pb2.Tool(name="f")] * 10_000), "tools"),
]
STOPS: list[list[str]] = [["a"] * 5, [""], ["x" * 1_000_000]]


def engine_rows() -> Iterator[BadMessage]:
    """Requests of `EngineService.Generate`."""
    for prompt in ([], [VOCABULARY], [LAST_UINT32], [1] * CONTEXT, [1] * 1_000_000):
        yield BadMessage(engine_pb2.GenerateRequest(prompt_token_ids=prompt), INVALID, "prompt_token_ids")
    for fields, field in SAMPLING:
        params = sampling_pb2.SamplingParams(**fields)
        message = engine_pb2.GenerateRequest(prompt_token_ids=[1], sampling_params=params)
        yield BadMessage(message, INVALID, field)
    for fields, code, field in SHARED:
        yield BadMessage(engine_pb2.GenerateRequest(prompt_token_ids=[1], **fields), code, field)


def text_rows() -> Iterator[BadMessage]:
    """Requests of `TextService.Generate`."""
    good: dict[str, Any] = {"text": text_pb2.TextPrompt(text="Hi")}
    yield BadMessage(text_pb2.GenerateRequest(), INVALID, "prompt")
    for prompt in ([], [VOCABULARY], [LAST_UINT32], [1] * CONTEXT, [1] * 1_000_000):
        tokens = text_pb2.TokenPrompt(token_ids=prompt)
        # An empty one is the engine's to name.
        yield BadMessage(text_pb2.GenerateRequest(tokens=tokens), INVALID, "prompt" if prompt else "prompt_token_ids")
    yield BadMessage(text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="word " * 9000)), INVALID, "prompt")
    yield BadMessage(text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="a", suffix="b")), INVALID, "suffix")
    for fields, field in SAMPLING:
        params = sampling_pb2.SamplingParams(**fields)
        yield BadMessage(text_pb2.GenerateRequest(sampling_params=params, **good), INVALID, field)
    for fields, code, field in SHARED:
        yield BadMessage(text_pb2.GenerateRequest(**good, **fields), code, field)
    for stop in STOPS:
        yield BadMessage(text_pb2.GenerateRequest(stop=stop, **good), INVALID, "stop")
    for chat, field in CHATS:
        yield BadMessage(text_pb2.GenerateRequest(chat=chat), INVALID, field)
    yield BadMessage(text_pb2.GenerateRequest(chat=_chat(_message()), echo=True), INVALID, "echo")


def unary_rows() -> Iterator[tuple[str, BadMessage]]:
    """Requests of `TextService`'s unary methods, with the method's name."""
    for name, request in (
        ("Tokenize", text_pb2.TokenizeRequest(model="unknown")),
        ("Detokenize", text_pb2.DetokenizeRequest(model="../../x")),
        ("RenderChat", text_pb2.RenderChatRequest(model="unknown")),
    ):
        yield name, BadMessage(request, NOT_FOUND, "model")
    for ids in ([VOCABULARY], [LAST_UINT32], [1] * 1_100_000):
        yield "Detokenize", BadMessage(text_pb2.DetokenizeRequest(token_ids=ids), INVALID, "token_ids")
    for chat, field in CHATS:
        yield "RenderChat", BadMessage(text_pb2.RenderChatRequest(chat=chat), INVALID, field)
