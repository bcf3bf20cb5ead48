"""Fields of a chat that change its prompt, its length, or nothing at all."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.e2e.service import Service


def ask(service: Service, **fields: Any) -> dict[str, Any]:
    """The answer to a small greedy chat."""
    body: dict[str, Any] = {"model": service.model, "messages": [{"role": "user", "content": "Hello"}]}
    body |= {"temperature": 0, "ignore_eos": True, **({"max_tokens": 8} | fields)}
    response = httpx.post(f"{service.url}/v1/chat/completions", json=body, timeout=60)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "somebody"},
        {"metadata": {"purpose": "test"}},
        {"store": True},
        {"service_tier": "auto"},
        {"safety_identifier": "x", "prompt_cache_key": "y"},
        {"reasoning_effort": "low"},
        {"chat_template_kwargs": {"unknown_to_the_template": [1]}},
        {"a_field_of_next_year": {"a": 1}},
    ],
    ids=",".join,
)
def test_accepted_and_without_effect(service: Service, fields: dict[str, Any]) -> None:
    """What this model's template does not read, and what is for OpenAI's own books, is taken and changes nothing."""
    plain, answer = ask(service), ask(service, **fields)
    assert answer["choices"] == plain["choices"]
    assert answer["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]


def test_template_variables_reach_the_template(service: Service) -> None:
    """chat_template_kwargs: a variable that the template knows makes another prompt, here one that opens the
    reasoning: what the model then says is told as such, under both names."""
    plain, thinking = ask(service), ask(service, chat_template_kwargs={"thinking": True})
    assert thinking["usage"]["prompt_tokens"] > plain["usage"]["prompt_tokens"]
    message = thinking["choices"][0]["message"]
    assert message["reasoning"] == message["reasoning_content"] != ""
    assert message["content"] in ("", None)
    assert plain["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({"max_tokens": None, "max_completion_tokens": 5}, 5),
        ({"max_tokens": 3}, 3),
        ({"max_tokens": 7, "max_completion_tokens": 7}, 7),
    ],
)
def test_both_names_of_the_limit(service: Service, fields: dict[str, Any], tokens: int) -> None:
    """max_completion_tokens and the older max_tokens bound the answer alike."""
    answer = ask(service, **fields)
    assert answer["usage"]["completion_tokens"] == tokens
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_closed_prompt(service: Service) -> None:
    """add_generation_prompt false leaves the assistant's opening out of the prompt."""
    plain, closed = ask(service), ask(service, add_generation_prompt=False)
    assert closed["usage"]["prompt_tokens"] < plain["usage"]["prompt_tokens"]
    assert closed["choices"][0]["message"]["content"] != plain["choices"][0]["message"]["content"]
