"""Many streams at once, and requests that must not harm the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import grpc
import httpx
import pytest

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.e2e.service import Service, wait_until

STREAMS = 64


async def stream(client: httpx.AsyncClient, service: Service, number: int) -> tuple[str, list[str], dict[str, int]]:
    """Text, finish reasons and usage of one streamed completion."""
    body = {
        "model": service.model,
        "prompt": [1, 100 + number, 200 + number],
        "max_tokens": 50,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    text, reasons = "", []
    usage: dict[str, int] = {}
    async with client.stream("POST", f"{service.url}/v1/completions", json=body) as response:
        assert response.status_code == 200
        events = [line[6:] async for line in response.aiter_lines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    for event in map(json.loads, events):
        for choice in event["choices"]:
            text += choice["text"]
            reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
        usage = event["usage"] or usage
    return text, reasons, usage


async def test_64_streams_at_once(service: Service) -> None:
    """Each of 64 parallel streams ends once, complete, and with the text that the same ids give alone."""
    limits = httpx.Limits(max_connections=STREAMS)
    async with httpx.AsyncClient(timeout=120, limits=limits) as client:
        results = await asyncio.gather(*(stream(client, service, number) for number in range(STREAMS)))
        alone = [await stream(client, service, number) for number in (0, 31, 63)]
    for _, reasons, usage in results:
        assert reasons == ["length"]
        assert usage["completion_tokens"] == 50
        assert usage["prompt_tokens"] == 3
    assert [results[number] for number in (0, 31, 63)] == alone
    wait_until(service.is_idle, 1, "vLLM is not idle")


def test_seeded_streams_leave_the_engine_alive(service: Service) -> None:
    """64 seeded requests with long prompts at once are served, and the same seed gives the same ids."""
    prompt = [1 + position % 40000 for position in range(1500)]
    with grpc.insecure_channel(service.engine) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)

        def start(seed: int) -> Iterator[engine_pb2.GenerateResponse]:
            params = sampling_pb2.SamplingParams(temperature=1, seed=seed, max_tokens=20, ignore_eos=True)
            return stub.Generate(engine_pb2.GenerateRequest(prompt_token_ids=[*prompt, seed], sampling_params=params))

        first, second = (
            [[i for response in call for i in response.delta.token_ids] for call in list(map(start, range(STREAMS)))]
            for _ in range(2)
        )
    assert first == second
    assert all(len(token_ids) == 20 for token_ids in first)
    assert len({tuple(token_ids) for token_ids in first}) > STREAMS // 2
    assert len(service.process_ids("EngineCore")) == 1


def test_ids_outside_the_vocabulary_are_refused(service: Service) -> None:
    """Wherever they come in, they are refused by name and figure, and the engine goes on."""
    outside = 49152
    response = httpx.post(f"{service.url}/v1/completions", json={"model": service.model, "prompt": [1, outside]})
    assert response.status_code == 400
    assert "49151" in response.json()["error"]["message"]
    with grpc.insecure_channel(service.engine) as channel, pytest.raises(grpc.RpcError) as refusal:
        list(
            engine_pb2_grpc.EngineServiceStub(channel).Generate(
                engine_pb2.GenerateRequest(prompt_token_ids=[1, outside])
            )
        )
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    tokens = text_pb2.TokenPrompt(token_ids=[1, outside])
    with grpc.insecure_channel(service.tokenizer) as channel, pytest.raises(grpc.RpcError) as refusal:
        list(text_pb2_grpc.TextServiceStub(channel).Generate(text_pb2.GenerateRequest(tokens=tokens)))
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    ok = httpx.post(
        f"{service.url}/v1/completions", json={"model": service.model, "prompt": [1], "max_tokens": 1}, timeout=30
    )
    assert ok.status_code == 200
