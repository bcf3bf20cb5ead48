"""Structured output of a real model through every name that callers use for it."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest

from tests.e2e.service import Service

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "country": {"enum": ["France", "Germany", "Italy"]},
        "sights": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 2},
    },
    "required": ["city", "country", "sights"],
    "additionalProperties": False,
}
STRICT = {"type": "json_schema", "json_schema": {"name": "place", "strict": True, "schema": SCHEMA}}


def body(service: Service, question: str, **fields: Any) -> dict[str, Any]:
    """A greedy chat request."""
    messages = [{"role": "user", "content": question}]
    return {"model": service.model, "messages": messages, "temperature": 0, "max_tokens": 120, **fields}


def answer(service: Service, question: str, **fields: Any) -> tuple[str, str]:
    """Text and finish reason."""
    response = httpx.post(f"{service.url}/v1/chat/completions", json=body(service, question, **fields), timeout=120)
    assert response.status_code == 200, response.text
    choice = response.json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


def streamed(service: Service, question: str, **fields: Any) -> tuple[str, str]:
    """Text and finish reason of the streamed answer."""
    asked = body(service, question, stream=True, **fields)
    with httpx.stream("POST", f"{service.url}/v1/chat/completions", json=asked, timeout=120) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return text, choices[-1]["finish_reason"]


def test_json_schema(service: Service) -> None:
    """The answer is JSON of the schema, its keys in the schema's order, streamed as in one piece."""
    question = "Which city has the Eiffel tower? Answer as JSON."
    text, reason = answer(service, question, response_format=STRICT)
    place = json.loads(text)
    assert reason == "stop" and list(place) == ["city", "country", "sights"]
    assert place["country"] in ("France", "Germany", "Italy") and len(place["sights"]) <= 2
    assert streamed(service, question, response_format=STRICT) == (text, reason)


def test_json_object(service: Service) -> None:
    """The answer is a JSON object, or the beginning of one where max_tokens ended it."""
    text, reason = answer(
        service, "Give me the name and age of a person as JSON.", response_format={"type": "json_object"}
    )
    assert text.lstrip().startswith("{")
    if reason == "stop":
        assert isinstance(json.loads(text), dict)


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        ({"structured_outputs": {"choice": ["positive", "negative"]}}, "positive|negative"),
        ({"guided_choice": ["Paris, of course", "Berlin"]}, "Paris, of course|Berlin"),
        ({"structured_outputs": {"regex": r"[A-Z][a-z]{3,8}!\d{2}"}}, r"[A-Z][a-z]{3,8}!\d{2}"),
        ({"guided_regex": "(yes|no) 🦙"}, "(yes|no) 🦙"),
        ({"structured_outputs": {"grammar": 'root ::= "SELECT " ("a" | "b") " FROM t"'}}, "SELECT [ab] FROM t"),
        ({"guided_grammar": 'start: "x" "y"+ "z"'}, "xy+z"),
        ({"structured_outputs": {"json": {"const": {"a": [1, None]}}}}, r'\{\s*"a"\s*:\s*\[\s*1\s*,\s*null\s*\]\s*\}'),
        ({"guided_json": {"enum": ["ü", 5]}}, '"ü"|5'),
    ],
)
def test_each_kind_is_obeyed(service: Service, fields: dict[str, Any], pattern: str) -> None:
    """The whole text matches what was asked for, streamed as in one piece, and ends by itself."""
    question = "Is Paris the capital of France?"
    text, reason = answer(service, question, **fields)
    assert re.fullmatch(pattern, text), text
    assert reason == "stop"
    assert streamed(service, question, **fields) == (text, reason)


def test_every_choice_obeys(service: Service) -> None:
    """With n the constraint holds for each choice; sampling does not loosen it."""
    fields = {"n": 4, "temperature": 1.2, "seed": 1, "structured_outputs": {"choice": ["red", "green", "blue"]}}
    asked = body(service, "Name a colour.", **fields)
    choices = httpx.post(f"{service.url}/v1/chat/completions", json=asked, timeout=120).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert {choice["message"]["content"] for choice in choices} <= {"red", "green", "blue"}


def test_completions_take_it_too(service: Service) -> None:
    """The same fields hold for a prompt of text."""
    asked = {"model": service.model, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 20}
    asked["structured_outputs"] = {"choice": [" Paris", " Rome"]}
    choice = httpx.post(f"{service.url}/v1/completions", json=asked, timeout=60).json()["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == (" Paris", "stop")
