"""Leaving is cancelling: within a second vLLM has stopped and its KV cache is free."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import grpc
import pytest

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.e2e.callers import WAYS, engine_rpc, sampling
from tests.e2e.service import Service, wait_until
from tests.e2e.tiny.conftest import MAX_NUM_SEQS

LONG = 8000
SHORT_PROMPT = [1, 500, 501, 502]


def running(service: Service) -> float:
    """Requests that vLLM has scheduled."""
    return service.engine_metric("vllm:num_requests_running")


def waiting(service: Service) -> float:
    """Requests that wait in vLLM's queue."""
    return service.engine_metric("vllm:num_requests_waiting")


@contextmanager
def full_engine(service: Service) -> Iterator[None]:
    """Fill all of vLLM's places with long generations."""
    with ExitStack() as stack:
        for _ in range(MAX_NUM_SEQS):
            caller = engine_rpc(service, SHORT_PROMPT, LONG)
            stack.callback(caller.leave)
        wait_until(lambda: running(service) == MAX_NUM_SEQS, 20, "vLLM is not full")
        yield
    wait_until(service.is_idle, 1, "vLLM is not idle")


@pytest.fixture(autouse=True)
def _idle_before(service: Service) -> None:
    wait_until(service.is_idle, 30, "vLLM is not idle before the test")


@pytest.mark.parametrize("way", WAYS)
def test_leaving_in_decode(service: Service, way: str) -> None:
    """A caller who leaves while tokens come frees the engine within a second."""
    caller = WAYS[way](service, SHORT_PROMPT, LONG)
    caller.first_token()
    wait_until(lambda: running(service) == 1, 20, "nothing runs")
    caller.leave()
    wait_until(service.is_idle, 1, f"{way}: vLLM is not idle")


@pytest.mark.parametrize("way", WAYS)
def test_leaving_in_prefill(service: Service, way: str) -> None:
    """Callers who leave while long prompts are being computed free the engine within a second."""
    prompts = [[1 + (seed * 7919 + position) % 40000 for position in range(LONG)] for seed in range(8)]
    callers = [WAYS[way](service, prompt, 100) for prompt in prompts]
    wait_until(lambda: running(service) + waiting(service) > 0, 20, "nothing arrived")
    for caller in callers:
        caller.leave()
    wait_until(service.is_idle, 1, f"{way}: vLLM is not idle")


@pytest.mark.parametrize("way", WAYS)
def test_leaving_the_queue(service: Service, way: str) -> None:
    """A caller who leaves while waiting in the queue is gone from it within a second, and others go on."""
    with full_engine(service):
        caller = WAYS[way](service, SHORT_PROMPT, LONG)
        wait_until(lambda: waiting(service) == 1, 20, "nothing waits")
        caller.leave()
        wait_until(lambda: waiting(service) == 0, 1, f"{way}: still in the queue")
        assert running(service) == MAX_NUM_SEQS


def test_deadline_of_a_call(service: Service) -> None:
    """A call whose gRPC deadline passes frees the engine within a second of it."""
    request = engine_pb2.GenerateRequest(prompt_token_ids=SHORT_PROMPT, sampling_params=sampling(LONG))
    with grpc.insecure_channel(service.engine) as channel:
        with pytest.raises(grpc.RpcError) as failure:
            list(engine_pb2_grpc.EngineServiceStub(channel).Generate(request, timeout=0.5))
        assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_until(service.is_idle, 1, "vLLM is not idle")


def test_deadline_in_a_request(service: Service) -> None:
    """A request whose own time is over fails with DEADLINE_EXCEEDED and frees the engine."""
    tokens = text_pb2.TokenPrompt(token_ids=SHORT_PROMPT)
    request = text_pb2.GenerateRequest(tokens=tokens, sampling_params=sampling(LONG), deadline_ms=500)
    begin = time.monotonic()
    with grpc.insecure_channel(service.tokenizer) as channel:
        with pytest.raises(grpc.RpcError) as failure:
            list(text_pb2_grpc.TextServiceStub(channel).Generate(request))
        assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert 0.4 < time.monotonic() - begin < 1.5
    wait_until(service.is_idle, 1, "vLLM is not idle")


def test_stop_string(service: Service) -> None:
    """A stop string ends the generation at the engine too, long before max_tokens."""
    tokens = text_pb2.TokenPrompt(token_ids=SHORT_PROMPT)
    request = text_pb2.GenerateRequest(tokens=tokens, sampling_params=sampling(LONG), stop=["e", "a"])
    with grpc.insecure_channel(service.tokenizer) as channel:
        *_, last = text_pb2_grpc.TextServiceStub(channel).Generate(request)
    assert last.finished.stop_string in ("e", "a")
    assert last.finished.usage.completion_tokens < 200
    wait_until(service.is_idle, 1, "vLLM is not idle")


def test_short_request_after_a_cancel_is_served_at_once(service: Service) -> None:
    """What was cancelled does not stand in the way of the next request."""
    for way in WAYS.values():
        caller = way(service, SHORT_PROMPT, LONG)
        caller.first_token()
        caller.leave()
        begin = time.monotonic()
        next_caller = engine_rpc(service, SHORT_PROMPT, 1)
        next_caller.first_token()
        assert time.monotonic() - begin < 1
        next_caller.leave()
