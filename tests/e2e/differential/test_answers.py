"""The comparison of two answers sees what differs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from tests.e2e.differential.answers import Answer, Choice, differences

CHOICE = Choice("abc", "stop", "x", {"content": [{"token": "abc", "logprob": -1.0}]}, [1, 2])
OTHER: dict[str, Any] = {
    "text": "abd",
    "finish_reason": "length",
    "stop_reason": "y",
    "logprobs": {"content": [{"token": "abc", "logprob": -1.1}]},
    "token_ids": [1, 3],
    "reasoning": "because",
    "tool_calls": [("get_weather", {"city": "Paris"})],
}


def answer(**changed: Any) -> Answer:
    """An answer of one choice."""
    return Answer(200, {0: replace(CHOICE, **changed)}, 5, 2)


@pytest.mark.parametrize("name", OTHER)
def test_each_part_of_a_choice_is_compared(name: str) -> None:
    """A part that differs is named, and nothing else is."""
    assert list(differences(answer(), answer(**{name: OTHER[name]}))) == [name]


def test_equal_answers() -> None:
    """Equal answers have no difference, and the last digits of a log probability make none."""
    near = {"content": [{"token": "abc", "logprob": -1.0000001}]}
    assert differences(answer(), answer()) == {}
    assert differences(answer(), answer(logprobs=near)) == {}


def test_all_parts_are_tried() -> None:
    """The parts that are tried are all that a choice has."""
    assert OTHER.keys() == asdict(CHOICE).keys()


def test_usage_and_choices_are_compared() -> None:
    """Token counts and the set of choices count too."""
    assert differences(answer(), replace(answer(), prompt_tokens=6)) == {"prompt_tokens": (5, 6)}
    assert "choices" in differences(answer(), replace(answer(), choices={0: CHOICE, 1: CHOICE}))


def test_refusals() -> None:
    """Two refusals are equal when their status is of one class; an answer and a refusal never are."""
    assert differences(Answer(400, error="no"), Answer(422, error="never")) == {}
    assert "status" in differences(Answer(400, error="no"), Answer(500, error="broken"))
    assert "status" in differences(answer(), Answer(400, error="no"))
