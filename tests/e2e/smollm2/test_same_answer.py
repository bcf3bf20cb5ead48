"""One answer, whichever way it is asked for: HTTP streamed and not, gRPC text, gRPC ids, vLLM's own server."""

from __future__ import annotations

import json

import grpc
import httpx
import pytest
from tokenizers import Tokenizer

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.e2e.peer import MAX_TOKENS, PeerAnswer
from tests.e2e.service import Service
from tests.e2e.smollm2.conftest import PROMPTS

GREEDY = sampling_pb2.SamplingParams(temperature=0, max_tokens=MAX_TOKENS)


def http_body(service: Service, prompt: str, **more: object) -> dict[str, object]:
    """A chat request at temperature 0."""
    messages = [{"role": "user", "content": prompt}]
    return {"model": service.model, "messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS, **more}


def http_text(service: Service, prompt: str) -> tuple[str, str]:
    """Text and finish reason of the answer in one piece."""
    response = httpx.post(f"{service.url}/v1/chat/completions", json=http_body(service, prompt), timeout=120)
    choice = response.raise_for_status().json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def streamed_text(service: Service, prompt: str) -> tuple[str, str]:
    """Text and finish reason of the streamed answer."""
    text, reasons = "", []
    body = http_body(service, prompt, stream=True)
    with httpx.stream("POST", f"{service.url}/v1/chat/completions", json=body, timeout=120) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        choice = json.loads(event)["choices"][0]
        text += choice["delta"].get("content") or ""
        reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
    (reason,) = reasons
    return text, reason


def grpc_text(service: Service, prompt: str) -> tuple[str, list[int]]:
    """Text and ids of the answer over the text service."""
    chat = chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text=prompt)])
    request = text_pb2.GenerateRequest(chat=chat, sampling_params=GREEDY)
    with grpc.insecure_channel(service.tokenizer) as channel:
        deltas = [r.delta for r in text_pb2_grpc.TextServiceStub(channel).Generate(request) if r.HasField("delta")]
    return "".join(delta.text for delta in deltas), [i for delta in deltas for i in delta.token_ids]


def grpc_ids(service: Service, prompt_token_ids: list[int]) -> list[int]:
    """Ids of the answer over the engine service."""
    request = engine_pb2.GenerateRequest(prompt_token_ids=prompt_token_ids, sampling_params=GREEDY)
    with grpc.insecure_channel(service.engine) as channel:
        responses = engine_pb2_grpc.EngineServiceStub(channel).Generate(request)
        return [i for response in responses for i in response.delta.token_ids]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_every_way_gives_vllms_answer(service: Service, vllm_answers: dict[str, PeerAnswer], prompt: str) -> None:
    """Text, ids and finish reason equal those of vLLM's own server for the same prompt, on every surface."""
    peer = vllm_answers[prompt]
    assert http_text(service, prompt) == (peer.text, peer.finish_reason)
    assert streamed_text(service, prompt) == (peer.text, peer.finish_reason)
    assert grpc_text(service, prompt) == (peer.text, peer.token_ids)
    assert grpc_ids(service, peer.prompt_token_ids) == peer.token_ids


def test_capital_of_france_is_paris(service: Service, smollm2: object) -> None:
    """At temperature 0 the model names Paris, and decoding its ids in one go gives the streamed text."""
    text, token_ids = grpc_text(service, "What is the capital of France?")
    assert "Paris" in text
    assert Tokenizer.from_file(f"{smollm2}/tokenizer.json").decode(token_ids, skip_special_tokens=True) == text


def test_chat_becomes_vllms_prompt(service: Service, vllm_answers: dict[str, PeerAnswer]) -> None:
    """The rendered and encoded chat is, id by id, the prompt that vLLM's own server makes of it."""
    for prompt, peer in vllm_answers.items():
        chat = chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text=prompt)])
        with grpc.insecure_channel(service.tokenizer) as channel:
            rendered = text_pb2_grpc.TextServiceStub(channel).RenderChat(text_pb2.RenderChatRequest(chat=chat))
        assert list(rendered.token_ids) == peer.prompt_token_ids
