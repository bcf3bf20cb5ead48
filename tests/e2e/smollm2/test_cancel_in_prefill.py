"""A long prompt on a model for which it takes many seconds."""

from __future__ import annotations

import time

import pytest

from tests.e2e.callers import WAYS, engine_rpc
from tests.e2e.service import Service, wait_until


@pytest.mark.parametrize("way", WAYS)
def test_leaving_a_long_prefill(service: Service, way: str) -> None:
    """Within a second of the caller's leaving the prompt is given up, and the next request is not held up."""
    wait_until(service.is_idle, 30, "vLLM is not idle before the test")
    prompt = [1 + (len(way) * 7919 + position) % 40000 for position in range(6000)]
    caller = WAYS[way](service, prompt, 100)
    # vLLM tells of a request when its first step is done: here, the first chunk of the prompt.
    wait_until(lambda: not service.is_idle(), 20, "nothing runs")
    caller.leave()
    wait_until(service.is_idle, 1, f"{way}: vLLM is not idle")
    begin = time.monotonic()
    short = engine_rpc(service, [1, 500, 501], 2)
    short.first_token()
    assert time.monotonic() - begin < 1
    short.leave()
