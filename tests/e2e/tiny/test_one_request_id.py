"""A caller's request id is a name for the logs alone."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import httpx

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc
from tests.e2e.callers import sampling
from tests.e2e.service import Service, wait_until

SAME = "one-and-the-same"
PROMPTS = [[500 + number, 600, 700] for number in range(2)]
TOKENS = 250


def streamed(service: Service, prompt: list[int], begun: threading.Barrier | None = None) -> tuple[str, str]:
    """The text of a greedy stream under the same id, and the answer's own id. `begun` holds it up after its start."""
    body: dict[str, Any] = {"model": service.model, "prompt": prompt, "max_tokens": TOKENS, "temperature": 0}
    body |= {"ignore_eos": True, "stream": True}
    text, ids, events = "", set(), 0
    headers = {"x-request-id": SAME}
    with httpx.stream("POST", f"{service.url}/v1/completions", json=body, headers=headers, timeout=60) as response:
        assert response.headers["x-request-id"] == SAME
        for line in response.iter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line[6:])
                text += chunk["choices"][0]["text"]
                ids.add(chunk["id"])
                events += 1
                if events == 1 and begun is not None:
                    begun.wait(20)
    (answer_id,) = ids
    return text, answer_id


def test_live_requests_of_one_id_are_all_served(service: Service) -> None:
    """Two streams under one x-request-id, begun at once, have the texts that they have alone, and ids of their own."""
    alone = [streamed(service, prompt)[0] for prompt in PROMPTS]
    begun = threading.Barrier(len(PROMPTS))
    with ThreadPoolExecutor(len(PROMPTS)) as pool:
        together = list(pool.map(lambda prompt: streamed(service, prompt, begun), PROMPTS))
    assert [text for text, _ in together] == alone
    assert len({answer_id for _, answer_id in together}) == len(PROMPTS)
    assert len(set(alone)) == len(PROMPTS)


def test_leaving_one_of_two_calls_leaves_the_other(service: Service) -> None:
    """On the engine's own port too: the cancel of one request ends no other of its id."""
    with grpc.insecure_channel(service.engine) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)

        def call() -> Any:
            request = engine_pb2.GenerateRequest(
                request_id=SAME, prompt_token_ids=[1, 500], sampling_params=sampling(TOKENS)
            )
            running = stub.Generate(request)
            next(running)
            return running

        leaving, staying = call(), call()
        leaving.cancel()
        tokens = [token_id for response in staying for token_id in response.delta.token_ids]
    assert len(tokens) == TOKENS
    wait_until(service.is_idle, 1, "vLLM is not idle")
