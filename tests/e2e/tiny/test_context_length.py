"""A prompt that does not fit the context, and one that just does."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.e2e.service import Service

CONTEXT = 8192


def post(service: Service, path: str, **fields: Any) -> httpx.Response:
    """The answer to a request."""
    return httpx.post(f"{service.url}/v1/{path}", json={"model": service.model, **fields}, timeout=120)


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_beyond_the_context_is_refused(service: Service, stream: bool) -> None:
    """400 with OpenAI's code, both figures and the caller's own field, before the first byte of a stream."""
    for tokens in (CONTEXT, CONTEXT + 1000):
        response = post(service, "completions", prompt=[500] * tokens, stream=stream)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "prompt")
        assert str(tokens) in error["message"] and str(CONTEXT) in error["message"]
    messages = [{"role": "user", "content": "word " * (CONTEXT + 500)}]
    response = post(service, "chat/completions", messages=messages, stream=stream)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    assert str(CONTEXT) in error["message"] and "tokens" in error["message"]


def test_more_tokens_than_the_prompt_leaves_are_refused(service: Service) -> None:
    """The error names max_tokens and says how many there is room for."""
    response = post(service, "completions", prompt=[500] * 100, max_tokens=CONTEXT - 99)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "max_tokens")
    assert str(CONTEXT - 100) in error["message"] and str(CONTEXT) in error["message"]


@pytest.mark.parametrize(("tokens", "fields"), [(CONTEXT - 1, {}), (CONTEXT - 1, {"max_tokens": 1})])
def test_exactly_at_the_limit_is_served(service: Service, tokens: int, fields: dict[str, Any]) -> None:
    """A prompt that leaves room for one token gets one."""
    response = post(service, "completions", prompt=[500] * tokens, ignore_eos=True, temperature=0, **fields)
    assert response.status_code == 200, response.text
    usage = response.json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (tokens, 1)
    assert response.json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("completions", {"prompt": [49152]}, "prompt"),
        ("completions", {"prompt": "a", "stop_token_ids": [49152]}, "stop_token_ids"),
        ("completions", {"prompt": "a", "logit_bias": {"49152": 1}}, "logit_bias"),
    ],
)
def test_errors_of_the_engine_name_the_callers_field(
    service: Service, path: str, fields: dict[str, Any], param: str
) -> None:
    """What only the engine can check is told by the name that the caller knows."""
    response = post(service, path, **fields)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("stream", [False, True])
def test_without_a_limit_the_answer_may_fill_the_context(service: Service, stream: bool) -> None:
    """`max_tokens` left out means the rest of the context, on both endpoints, and no library's default."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("completions", {"prompt": [500] * (CONTEXT - 40)}),
        ("chat/completions", {"messages": [{"role": "user", "content": " a" * (CONTEXT - 100)}]}),
    ]
    for path, prompt in asked:
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        response = post(service, path, **prompt, **options, ignore_eos=True, temperature=0)
        assert response.status_code == 200, response.text
        # The last event before [DONE].
        answer = json.loads(response.text.split("data: ")[-2]) if stream else response.json()
        assert answer["usage"]["total_tokens"] == CONTEXT
        assert answer["usage"]["completion_tokens"] > 20
