"""The token ids of our answers, which the text service tells beside the text."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from streamomni.engine.v1.sampling_pb2 import SamplingParams
from streamomni.text.v1.chat_pb2 import ChatMessage, ChatPrompt, ContentPart, ContentParts
from streamomni.text.v1.text_pb2 import GenerateRequest, TextPrompt, TokenPrompt
from streamomni.text.v1.text_pb2_grpc import TextServiceStub
from tests.e2e.differential.answers import AT_ONCE
from tests.e2e.differential.requests import Case

_UNTRANSLATED = {"chat_template_kwargs", "echo", "response_format", "structured_outputs", "tools"}
_SAMPLING = tuple(SamplingParams.DESCRIPTOR.fields_by_name)


def our_token_ids(tokenizer: str, cases: Sequence[Case]) -> dict[str, dict[int, list[int]]]:
    """Ask the text service all cases, and return the ids of each choice by the cases' names."""
    with grpc.insecure_channel(tokenizer) as channel, ThreadPoolExecutor(AT_ONCE) as pool:
        stub = TextServiceStub(channel)
        answers = pool.map(lambda case: _generate(stub, case.body), cases)
        return dict(zip([case.name for case in cases], answers, strict=True))


def has_token_ids(case: Case) -> bool:
    """Whether it is put to the text service too: one prompt, and nothing but what `text_request` translates."""
    prompt = case.body.get("prompt")
    listed = isinstance(prompt, list) and not isinstance(prompt[0], int)
    return not listed and not case.body.keys() & _UNTRANSLATED


def _generate(stub: TextServiceStub, body: dict[str, Any]) -> dict[int, list[int]]:
    ids: dict[int, list[int]] = {index: [] for index in range(body.get("n", 1))}
    for response in stub.Generate(text_request(body)):
        if response.HasField("delta"):
            ids[response.delta.index] += response.delta.token_ids
    return ids


def text_request(body: dict[str, Any]) -> GenerateRequest:
    """Make the text service's request of OpenAI's."""
    sampling = {name: body[name] for name in _SAMPLING if name in body and name != "logprobs"}
    if "logit_bias" in sampling:
        sampling["logit_bias"] = {int(key): value for key, value in sampling["logit_bias"].items()}
    if "max_completion_tokens" in body:
        sampling["max_tokens"] = body["max_completion_tokens"]
    stop = body.get("stop", [])
    request = GenerateRequest(
        sampling_params=SamplingParams(**sampling),
        n=body.get("n"),
        stop=[stop] if isinstance(stop, str) else stop,
        include_stop_str_in_output=body.get("include_stop_str_in_output", False),
        skip_special_tokens=body.get("skip_special_tokens"),
    )
    if "messages" in body:
        request.chat.CopyFrom(
            ChatPrompt(
                messages=[_message(message) for message in body["messages"]],
                add_generation_prompt=body.get("add_generation_prompt"),
                continue_final_message=body.get("continue_final_message", False),
            )
        )
    elif isinstance(body["prompt"], str):
        prompt = TextPrompt(text=body["prompt"], add_special_tokens=body.get("add_special_tokens"))
        request.text.CopyFrom(prompt)
    else:
        request.tokens.CopyFrom(TokenPrompt(token_ids=body["prompt"]))
    return request


def _message(message: dict[str, Any]) -> ChatMessage:
    content = message["content"]
    sent = ChatMessage(role=message["role"], name=message.get("name"))
    if isinstance(content, str):
        sent.text = content
    else:
        sent.parts.CopyFrom(ContentParts(parts=[ContentPart(text=part["text"]) for part in content]))
    return sent
