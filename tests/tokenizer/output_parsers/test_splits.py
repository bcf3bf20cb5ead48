"""What holds for every parser: splits do not matter, and nothing is lost."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.output_parsers.deepseek import DeepSeekParser
from services.tokenizer.output_parsers.forced import CallListParser
from services.tokenizer.output_parsers.mistral import MistralParser
from services.tokenizer.output_parsers.port import NewId, OutputParser
from services.tokenizer.output_parsers.pythonic import PythonicParser
from services.tokenizer.output_parsers.qwen3_coder import Qwen3CoderParser
from services.tokenizer.output_parsers.reasoning import ReasoningParser
from services.tokenizer.output_parsers.tagged import HermesParser, LlamaJsonParser
from services.tokenizer.tool_use import Tool
from tests.tokenizer.output_parsers.parsing import NewParser, parse


def thinking_hermes(new_id: NewId) -> OutputParser:
    """As Qwen 3."""
    return ReasoningParser("<think>", "</think>", False, HermesParser(new_id))


def opened_hermes(new_id: NewId) -> OutputParser:
    """As Qwen 3 where the prompt opens the reasoning."""
    return ReasoningParser("<think>", "</think>", True, HermesParser(new_id))


def coder(new_id: NewId) -> OutputParser:
    """As Qwen3-Coder, with parameters of several types."""
    types = {"a": "string", "b": "integer", "c": ["string", "null"]}
    schema = {"properties": {name: {"type": kind} for name, kind in types.items()}}
    return Qwen3CoderParser([Tool("f", None, schema)], new_id)


PARSERS: list[NewParser] = [
    CallListParser,
    DeepSeekParser,
    HermesParser,
    LlamaJsonParser,
    MistralParser,
    PythonicParser,
    thinking_hermes,
    opened_hermes,
    coder,
]
FRAGMENTS = [
    *("<tool_call>", "</tool_call>", "<think>", "</think>", "<|python_tag|>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "function", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    *("<｜tool▁calls▁end｜>", "```json\n", "```", "{", "}", "[", "]", "(", ")", ",", ";", ":", '"', "'", "\\", "="),
    *(" ", "\n", "f", "g", "<", "1", "é", "<tool_ca", '"name"', '"arguments"', '"parameters"', '"id"', '"x"'),
    '{"name": "f", "arguments": {"a": [1, "}"]}}',
    '{"parameters": {"b": "\\""}, "name": "g"}',
    '{"name": "f"}',
    '{"name": "", "arguments": {}}',
    '{"name": "f", "arguments": "no object"}',
    "f(a=1, b='x')",
    "g()",
    '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": 1}\n```<｜tool▁call▁end｜>',
    '<｜tool▁call▁begin｜>g<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>',
    'f{"a": 1}',
    'f[CALL_ID]abc[ARGS]{"a": {}}',
    *("<function=", "f>", "</function>", "<parameter=", "a>", "b>", "c>", "</parameter>", "\n</parameter>", "nul"),
    "<tool_call>\n<function=f>\n<parameter=a>\n",
    "<parameter=b>\n12\n</parameter>\n</function>\n</tool_call>",
]


@st.composite
def split_texts(draw: st.DrawFn) -> list[str]:
    """A text of fragments, in pieces that know nothing of them."""
    text = "".join(draw(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14)))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    return [text[low:high] for low, high in itertools.pairwise([0, *cuts, len(text)])]


@pytest.mark.parametrize("new_parser", PARSERS)
@settings(max_examples=700, deadline=None)
@given(split_texts())
def test_splits_do_not_matter_and_nothing_is_lost(new_parser: NewParser, pieces: list[str]) -> None:
    """Any split gives the same parts, and a text without a call comes back to the last character."""
    text = "".join(pieces)
    whole, split = parse(new_parser, [text]), parse(new_parser, pieces)
    assert whole == split
    if not whole.calls and not whole.reasoning and "think" not in text:
        assert whole.content == text
    if not any(mark in text for mark in ("name", "(", "｜", "CALL")):
        shown = whole.content + whole.reasoning + "".join(name + arguments for name, arguments in whole.named)
        for word in "é1":
            assert shown.count(word) == text.count(word), "syntax holds none of these"


@pytest.mark.parametrize("new_parser", PARSERS)
def test_plain_text_is_held_no_longer_than_a_tag_may_begin(new_parser: NewParser) -> None:
    """As with stop strings, ordinary text comes out at once, and only a proper prefix of a tag is held."""
    parser = new_parser(lambda: "id")
    if new_parser is opened_hermes:
        parser.feed("</think>")
    for word in ["The", " sum", " a", " <", " b", " [", "c] (", "x)", "\n\n", "{}"]:
        parts = parser.feed(word)
        assert "".join(getattr(part, "text", "") for part in parts).strip(" <[") == word.strip(" <["), word
