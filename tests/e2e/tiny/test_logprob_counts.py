"""How many alternatives each request of a step is told of."""

from __future__ import annotations

import grpc

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from tests.e2e.service import Service

PROMPT = [1, 500, 501, 502]


def request(max_tokens: int, logprobs: int) -> engine_pb2.GenerateRequest:
    """A generation with so many alternatives a token."""
    sampling = sampling_pb2.SamplingParams(max_tokens=max_tokens, ignore_eos=True, logprobs=logprobs)
    return engine_pb2.GenerateRequest(prompt_token_ids=PROMPT, sampling_params=sampling)


def test_each_gets_its_own_number(service: Service) -> None:
    """A request is told of as many alternatives as it asked for, however many others in the same step want."""
    with grpc.insecure_channel(service.engine) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        greedy_for_more = stub.Generate(request(4000, 5))
        next(greedy_for_more)
        assert next(greedy_for_more).delta.logprobs.top_count == 5
        for count in (0, 2):
            deltas = [each.delta for each in stub.Generate(request(5, count)) if each.HasField("delta")]
            assert deltas
            assert all(delta.logprobs.top_count == count for delta in deltas)
            assert all(len(delta.logprobs.top_logprobs) == count * len(delta.token_ids) for delta in deltas)
        greedy_for_more.cancel()
