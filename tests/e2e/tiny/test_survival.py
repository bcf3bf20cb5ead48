"""Processes that die, and a service that stays up."""

from __future__ import annotations

import json
import os
import signal

import httpx
import pytest

from tests.e2e.service import Service, wait_until

LONG_STREAM = {"prompt": [1, 5, 6], "max_tokens": 8000, "ignore_eos": True, "stream": True}


def is_served(service: Service) -> bool:
    """Whether a short request gets its answer."""
    body = {"model": service.model, "prompt": [1], "max_tokens": 1}
    try:
        return httpx.post(f"{service.url}/v1/completions", json=body, timeout=10).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("title", ["services.tokenizer", "VLLM::EngineCore", "services.engine"])
def test_kill_of_a_process(service: Service, title: str) -> None:
    """A stream whose tier is killed ends with an error event and without [DONE]; then the service comes back."""
    with httpx.stream(
        "POST", f"{service.url}/v1/completions", json={"model": service.model, **LONG_STREAM}, timeout=60
    ) as response:
        events: list[str] = []
        for line in response.iter_lines():
            if line.startswith("data: "):
                events.append(line[6:])
                if len(events) == 10:
                    os.kill(service.process_ids(title)[0], signal.SIGKILL)
    assert "[DONE]" not in events
    last = json.loads(events[-1])
    assert last["error"]["type"] == "server_error"
    assert all(not choice["finish_reason"] for event in events[:-1] for choice in json.loads(event)["choices"])
    wait_until(lambda: is_served(service), 90, f"not served again after the kill of {title}")
    wait_until(service.is_idle, 5, "vLLM is not idle")
