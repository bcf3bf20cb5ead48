"""Hermes' and Llama's JSON calls."""

from __future__ import annotations

import json

import pytest

from services.tokenizer.output_parsers.port import Content, ToolCallPiece
from services.tokenizer.output_parsers.tagged import HermesParser, LlamaJsonParser
from tests.tokenizer.output_parsers.parsing import NewParser, Outcome, parsed

CALL = '{"name": "get_weather", "arguments": {"city": "Paris", "days": [1, 2]}}'
ARGUMENTS = '{"city": "Paris", "days": [1, 2]}'


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (f"<tool_call>\n{CALL}\n</tool_call>", "", 1),
        (f"I look.\n<tool_call>{CALL}</tool_call>\n<tool_call>\n{CALL}\n</tool_call>\n", "I look.\n", 2),
        (f"\n\n<tool_call>{CALL}</tool_call>Done.", "Done.", 1),
        (f"<tool_call>[{CALL}, {CALL}]</tool_call>", "", 2),
        (f"<tool_call>{CALL[:-1]}\n</tool_call>", "", 1),
        (f"<tool_call>{CALL}", "", 1),
        (f"<tool_call>{CALL}</tool_ca", "</tool_ca", 1),
    ],
)
def test_hermes_calls(text: str, content: str, calls: int) -> None:
    """Calls between tags are told with their arguments as they were written; white space around tags is syntax."""
    outcome = parsed(HermesParser, text)
    assert outcome.content == content
    assert outcome.named == [("get_weather", ARGUMENTS)] * calls
    assert [call_id for call_id, _, _ in outcome.calls] == [f"id{index}" for index in range(calls)]


@pytest.mark.parametrize(
    "inside",
    [
        "",
        "no JSON",
        '{"name": "", "arguments": {}}',
        '{"name": "f", "arguments": 7}',
        '{"name": 7, "arguments": {}}',
        '{"arguments": {"a": 1}}',
        '{"nickname": "f"}',
        "[]",
        '{"name": "' + "f" * 300 + '", "arguments": {}}',
        '{"name": "f\\ud83d", "arguments"',
    ],
)
@pytest.mark.parametrize("end", ["</tool_call>", ""])
def test_what_is_no_call_is_content(inside: str, end: str) -> None:
    """No empty name; what begins as a call and is none comes out whole, as content."""
    text = f"Look: <tool_call>\n{inside}{end}"
    assert parsed(HermesParser, text) == Outcome(content=text)


def test_a_tag_cut_off_is_flushed() -> None:
    """A stream that ends inside a tag loses nothing of it."""
    assert parsed(HermesParser, "Well <tool_ca") == Outcome(content="Well <tool_ca")
    assert parsed(HermesParser, "  \n") == Outcome(content="  \n")


def test_arguments_stream_as_they_come() -> None:
    """Id and name come once, as soon as the arguments begin, then each piece of the arguments at once."""
    parser = HermesParser(lambda: "id0")
    assert parser.feed('<tool_call>{"name": "f", "argu') == []
    assert parser.feed('ments": {"a": "') == [ToolCallPiece(0, '{"a": "', "id0", "f")]
    assert parser.feed("} </tool_call>") == [ToolCallPiece(0, "} </tool_call>")]
    assert parser.feed('"}}') == [ToolCallPiece(0, '"}')]
    assert parser.feed("</tool_call> ok") == [Content(" ok")]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    """Arguments are valid JSON also where the model leaves them out, or puts them first."""
    assert parsed(HermesParser, '<tool_call>{"name": "f"}</tool_call>').named == [("f", "{}")]
    first = '<tool_call>{"arguments": {"a": "\\u00e9"}, "name": "f"}</tool_call>'
    assert parsed(HermesParser, first).named == [("f", '{"a": "\\u00e9"}')]


@pytest.mark.parametrize("tag", ["", "<|python_tag|>", "\n"])
@pytest.mark.parametrize("key", ["parameters", "arguments"])
def test_llama_calls(tag: str, key: str) -> None:
    """Llama's calls stand alone at the start, with or without their tag, one or several."""
    call = json.dumps({"type": "function", "name": "f", key: {"q": 'a "b"; c'}})
    outcome = parsed(LlamaJsonParser, f"{tag}{call}; {call}")
    assert outcome.content == ""
    assert outcome.named == [("f", '{"q": "a \\"b\\"; c"}')] * 2


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": 42}',
        '{"name": "Bob"}',
        '{"name": "Bob", "age": 7}',
        'So: {"name": "f", "parameters": {}}',
        "<|python_tag|>print(1)",
        " " * 20 + '{"name": "f", "parameters": {}}',
    ],
)
def test_llama_content_that_looks_like_a_call(text: str) -> None:
    """JSON that is an answer, or a call that is quoted, stays content."""
    assert parsed(LlamaJsonParser, text) == Outcome(content=text)


@pytest.mark.parametrize("new_parser", [HermesParser, LlamaJsonParser])
def test_a_long_output_takes_linear_time(new_parser: NewParser) -> None:
    """A call's arguments of 200,000 characters come through piece by piece, all of them."""
    value = "x[" * 100_000
    text = f'<tool_call><|python_tag|>{{"name": "f", "parameters": {{"a": "{value}"}}}}'
    start = text if new_parser is HermesParser else text.removeprefix("<tool_call>")
    start = start.replace("<|python_tag|>", "") if new_parser is HermesParser else start
    assert parsed(new_parser, start).named == [("f", f'{{"a": "{value}"}}')]
