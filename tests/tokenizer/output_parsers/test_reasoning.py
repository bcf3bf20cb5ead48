"""Reasoning before the answer."""

from __future__ import annotations

import pytest

from services.tokenizer.output_parsers.port import Content, NewId, OutputParser, Reasoning
from services.tokenizer.output_parsers.reasoning import ContentParser, ReasoningParser
from services.tokenizer.output_parsers.tagged import HermesParser
from tests.tokenizer.output_parsers.parsing import Outcome, parsed


def closed(_: NewId) -> OutputParser:
    """The model opens its reasoning itself."""
    return ReasoningParser("<think>", "</think>", False, ContentParser())


def opened(_: NewId) -> OutputParser:
    """The prompt has opened it."""
    return ReasoningParser("<think>", "</think>", True, ContentParser())


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>\nHm.\n</think>\n\nParis.", "\nHm.\n", "\n\nParis."),
        ("\n<think></think>Paris.", "", "Paris."),
        ("<think>Hm.", "Hm.", ""),
        ("<think>Hm.</thi", "Hm.</thi", ""),
        ("Write <think>a</think>.", "", "Write <think>a</think>."),
        ("<thi", "", "<thi"),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
        ("", "", ""),
    ],
)
def test_the_model_opens_it(text: str, reasoning: str, content: str) -> None:
    """Text between the tags at the start is reasoning, the first character after them is kept, and a tag that
    was cut off is flushed."""
    assert parsed(closed, text) == Outcome(content, reasoning)


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [("Hm.</think>Paris.", "Hm.", "Paris."), ("Hm. <", "Hm. <", ""), ("a<think>b</think>c", "a<think>b", "c")],
)
def test_the_prompt_opened_it(text: str, reasoning: str, content: str) -> None:
    """Where the prompt ends with the opening tag, the output begins with reasoning."""
    assert parsed(opened, text) == Outcome(content, reasoning)


def test_reasoning_streams() -> None:
    """Each piece of the reasoning comes out at once, but for what may be the closing tag."""
    parser = ReasoningParser("<think>", "</think>", True, ContentParser())
    assert parser.feed("So a < b") == [Reasoning("So a < b")]
    assert parser.feed(" and <") == [Reasoning(" and ")]
    assert parser.feed("/think>Yes") == [Content("Yes")]
    assert parser.feed(".") == [Content(".")]


def test_calls_follow_reasoning() -> None:
    """A call after the reasoning is a call, and one that is only thought of is not."""

    def parser(new_id: NewId) -> OutputParser:
        return ReasoningParser("<think>", "</think>", True, HermesParser(new_id))

    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    outcome = parsed(parser, f"I may say {call}.</think>\n\n{call}")
    assert outcome == Outcome("", f"I may say {call}.", [("id0", "f", "{}")])
