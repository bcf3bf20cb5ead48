"""Llama's pythonic calls."""

from __future__ import annotations

import json

import pytest

from services.tokenizer.output_parsers.pythonic import PythonicParser
from tests.tokenizer.output_parsers.parsing import Outcome, parsed


@pytest.mark.parametrize("tag", ["", "\n", "<|python_tag|>", "<|python_start|>"])
def test_calls_become_json(tag: str) -> None:
    """Keyword arguments become a JSON object, whatever brackets and quotes their strings hold."""
    text = f"""{tag}[f(a=1, b="x)'", c=[True, None, {{'k': -1.5}}]), pkg.g(), h(d=true, e='\\'é(')]"""
    outcome = parsed(PythonicParser, text)
    assert outcome.content == ""
    assert [(name, json.loads(arguments)) for name, arguments in outcome.named] == [
        ("f", {"a": 1, "b": "x)'", "c": [True, None, {"k": -1.5}]}),
        ("pkg.g", {}),
        ("h", {"d": True, "e": "'é("}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[1] A footnote.",
        "[f] is a list",
        "[f(1)]",
        "[f(a=b)]",
        "[f(**x)]",
        "[f(a={1, 2})]",
        "[f(a=1e999)]",
        "[f(a=",
        "[]",
        "Call [f(a=1)]",
        "<|python_tag|>import os",
    ],
)
def test_what_is_no_call_is_content(text: str) -> None:
    """Lists, positional arguments and names are no calls, and nothing of them is lost."""
    assert parsed(PythonicParser, text) == Outcome(content=text)


def test_what_follows_a_call_is_content() -> None:
    """A call that is certain stays one; what does not belong to it is content."""
    outcome = parsed(PythonicParser, "[f(a=1), oops")
    assert (outcome.named, outcome.content.strip()) == ([("f", '{"a": 1}')], "oops")
