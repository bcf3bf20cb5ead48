"""Several prompts in one request, several choices, and the usage of both, on real vLLM."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.e2e.callers import HttpCaller
from tests.e2e.service import Service, wait_until

PROMPTS = ["The quick brown fox", "jumps over", "the lazy dog, and"]


def body_of(service: Service, **fields: Any) -> dict[str, Any]:
    """A greedy completion of 12 tokens."""
    fixed = {"temperature": 0, "max_tokens": 12, "ignore_eos": True, "skip_special_tokens": False}
    return {"model": service.model} | fixed | fields


def post(service: Service, **fields: Any) -> dict[str, Any]:
    """The answer in one piece."""
    response = httpx.post(f"{service.url}/v1/completions", json=body_of(service, **fields), timeout=60)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def chunks(service: Service, path: str = "completions", **fields: Any) -> list[dict[str, Any]]:
    """The chunks of the streamed answer."""
    body = body_of(service, stream=True, **fields)
    with httpx.stream("POST", f"{service.url}/v1/{path}", json=body, timeout=60) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


@pytest.fixture(scope="module")
def alone(service: Service) -> list[dict[str, Any]]:
    """Each prompt's answer in a request of its own."""
    return [post(service, prompt=prompt) for prompt in PROMPTS]


def test_choices_are_numbered_by_prompt(service: Service, alone: list[dict[str, Any]]) -> None:
    """Choice i * n + j is choice j of prompt i, with the text that the prompt gets alone; usage is the sum."""
    answer = post(service, prompt=PROMPTS, n=2)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3, 4, 5]
    texts = [one["choices"][0]["text"] for one in alone]
    assert [choice["text"] for choice in answer["choices"]] == [text for text in texts for _ in range(2)]
    assert answer["usage"]["prompt_tokens"] == sum(one["usage"]["prompt_tokens"] for one in alone)
    assert answer["usage"]["completion_tokens"] == 6 * 12


def test_streamed_with_echo(service: Service, alone: list[dict[str, Any]]) -> None:
    """Streamed, each choice begins with its own prompt, goes on as alone and ends once."""
    streamed = chunks(service, prompt=PROMPTS, echo=True)
    choices = [choice for chunk in streamed for choice in chunk["choices"]]
    for index, (prompt, one) in enumerate(zip(PROMPTS, alone, strict=True)):
        own = [choice for choice in choices if choice["index"] == index]
        assert own[0]["text"] == prompt
        assert "".join(choice["text"] for choice in own) == prompt + one["choices"][0]["text"]
        assert [choice["finish_reason"] for choice in own if choice["finish_reason"]] == ["length"]


def test_lists_of_token_ids(service: Service) -> None:
    """Prompts as ids give what they give alone."""
    prompts = [[500, 501, 502], [7000]]
    answer = post(service, prompt=prompts)
    assert [choice["text"] for choice in answer["choices"]] == [
        post(service, prompt=prompt)["choices"][0]["text"] for prompt in prompts
    ]
    assert answer["usage"]["prompt_tokens"] == 4


def test_one_bad_prompt_fails_the_request(service: Service) -> None:
    """A prompt that the model cannot take refuses the whole, and nothing of the others is left in the engine."""
    body = body_of(service, prompt=[[500], [49152], [501]], max_tokens=2000)
    for stream in (False, True):
        response = httpx.post(f"{service.url}/v1/completions", json=body | {"stream": stream}, timeout=30)
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == "prompt"
    wait_until(service.is_idle, 2, "something still runs")


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_cancels_all(service: Service, stream: bool) -> None:
    """When the caller of 16 prompts leaves, all of them stop within a second."""
    wait_until(service.is_idle, 5, "something still runs")
    caller = HttpCaller(service, [[500 + number] for number in range(16)], 2000, stream=stream)
    running = "vllm:num_requests_running"
    wait_until(lambda: service.engine_metric(running) == 16, 30, "the prompts do not run at once")
    caller.leave()
    wait_until(service.is_idle, 1, "the prompts were not cancelled")


def test_three_choices_streamed(service: Service) -> None:
    """Three indices, each with role, text and one end; usage grows, counts the prompt once and ends as the
    final usage, which the last chunk tells."""
    streamed = chunks(
        service,
        "chat/completions",
        messages=[{"role": "user", "content": "Hi"}],
        n=3,
        temperature=1,
        seed=7,
        stream_options={"include_usage": True, "continuous_usage_stats": True},
    )
    last = streamed.pop()
    assert last["choices"] == []
    usages = [chunk["usage"] for chunk in streamed]
    assert usages[-1] == last["usage"]
    assert last["usage"]["completion_tokens"] == 36
    counts = [usage["completion_tokens"] for usage in usages]
    assert counts == sorted(counts)
    assert {usage["prompt_tokens"] for usage in usages} == {last["usage"]["prompt_tokens"]}
    choices = [choice for chunk in streamed for choice in chunk["choices"]]
    texts = set()
    for index in range(3):
        own = [choice for choice in choices if choice["index"] == index]
        assert own[0]["delta"] == {"role": "assistant", "content": ""}
        assert [choice["finish_reason"] for choice in own if choice["finish_reason"]] == ["length"]
        texts.add("".join(choice["delta"].get("content", "") for choice in own))
    assert len(texts) == 3
