"""Qwen3-Coder's calls."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tokenizer.output_parsers.port import Content, NewId, OutputParser, ToolCallPiece
from services.tokenizer.output_parsers.qwen3_coder import Qwen3CoderParser
from services.tokenizer.tool_use import Tool
from tests.tokenizer.output_parsers.parsing import Outcome, parse, parsed

TYPES = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "o": "object", "a": "array", "z": "null"}
TOOL = Tool("f", None, {"type": "object", "properties": {name: {"type": kind} for name, kind in TYPES.items()}})


def coder(new_id: NewId) -> OutputParser:
    """The parser, with one tool that has a parameter of each type."""
    return Qwen3CoderParser([TOOL], new_id)


def written(arguments: Mapping[str, object], name: str = "f") -> str:
    """A call as the models' own template prints it."""
    lines = ["<tool_call>", f"<function={name}>"]
    for key, value in arguments.items():
        text = json.dumps(value) if isinstance(value, dict | list) else str(value)
        lines += [f"<parameter={key}>", text, "</parameter>"]
    return "\n".join([*lines, "</function>", "</tool_call>"])


@pytest.mark.parametrize(
    ("text", "content", "arguments"),
    [
        (written({"s": "Paris", "i": 3}), "", ['{"s": "Paris", "i": 3}']),
        (f"I look.\n\n{written({'s': '5'})}\n{written({'b': True})}", "I look.\n\n", ['{"s": "5"}', '{"b": true}']),
        (written({}), "", ["{}"]),
        (written({"s": ""}), "", ['{"s": ""}']),
        (written({"s": "\n\n"}), "", ['{"s": "\\n\\n"}']),
        ("<tool_call><function=f><parameter=s>x</parameter></function></tool_call>", "", ['{"s": "x"}']),
        ("<function=f>\n<parameter=i>\n1\n</parameter>\n</function>", "", ['{"i": 1}']),
        ("<tool_call>\n<function=f>\n<parameter=i>\n1\n</parameter>\n</tool_call>", "", ['{"i": 1}']),
        ("<tool_call>\n<function=f>\n<parameter=i>\n1\n<parameter=s>\nx\n</function>", "", ['{"i": 1, "s": "x"}']),
        ("<tool_call><function=f></function><function=f></function></tool_call>", "", ["{}", "{}"]),
        (f"{written({'z': None})}\nDone.", "\nDone.", ['{"z": null}']),
        ("<tool_call><function=f><parameter=i>1</parameter>oops", "oops", ['{"i": 1}']),
    ],
)
def test_calls(text: str, content: str, arguments: list[str]) -> None:
    """Tags become calls whose arguments have the schema's types; forgotten tags lose nothing."""
    outcome = parsed(coder, text)
    assert outcome.content == content
    assert outcome.named == [("f", one) for one in arguments]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "<tool_call>\nno function",
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>',
        "<tool_call><function=></function></tool_call>",
        "<tool_call><function=two words></function>",
        f"<function={'f' * 300}></function>",
        "std::vector<function=f> x;",
        "<tool_call>\n<function=f>\n<param",
        "<tool_ca",
    ],
)
def test_what_is_no_call_is_content(text: str) -> None:
    """No empty name; what begins as a call and is none comes out whole, as content."""
    assert parsed(coder, text) == Outcome(content=text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("<tool_call><function=f><parameter=s>\nPar", '{"s": "Par'),
        ("<tool_call><function=f><parameter=s>\nPar\n</para", '{"s": "Par\\n</para'),
        ("<tool_call><function=f><parameter=o>\n{1", '{"o": {1'),
        ("<tool_call><function=f><parameter=i>\n1\n</parameter>\n", '{"i": 1'),
    ],
)
def test_what_is_cut_off_stays_cut_off(text: str, arguments: str) -> None:
    """A call that max_tokens ended is never made to look whole, and what came of it is told."""
    assert parsed(coder, text) == Outcome("", "", [("id0", "f", arguments)])


def test_arguments_stream_as_they_come() -> None:
    """Id and name come once, with the first argument; a string's characters at once, another value at its end."""
    parser = coder(lambda: "id0")
    assert parser.feed("<tool_call>\n<function=f>\n<parameter=s") == []
    assert parser.feed(">\n") == [ToolCallPiece(0, '{"s": ', "id0", "f")]
    assert parser.feed('say "') == [ToolCallPiece(0, '"'), ToolCallPiece(0, 'say \\"')]
    assert parser.feed("hi</p") == [ToolCallPiece(0, "hi")]
    assert parser.feed(">\n</parameter") == [ToolCallPiece(0, "</p>")]
    assert parser.feed(">\n<parameter=i>") == [ToolCallPiece(0, '"'), ToolCallPiece(0, ', "i": ')]
    assert parser.feed("12") == []
    assert parser.feed("</parameter></function>") == [ToolCallPiece(0, "12"), ToolCallPiece(0, "}")]
    assert parser.feed("</tool_call>So") == [Content("So")]


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "s": st.text(max_size=12),
        "i": st.integers(),
        "n": st.floats(allow_nan=False, allow_infinity=False),
        "b": st.booleans(),
        "o": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        "a": st.lists(st.text(max_size=4), max_size=2),
        "z": st.none(),
    },
)


@settings(max_examples=300, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=3), st.data())
def test_what_the_template_prints_is_read_back(calls: list[dict[str, object]], draw: st.DataObject) -> None:
    """Any arguments, as the template prints them, come back with their values and types, however the text is split."""
    text = "\n".join(written(arguments) for arguments in calls)
    cuts = sorted(draw.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    outcome = parse(coder, [text[low:high] for low, high in itertools.pairwise([0, *cuts, len(text)])])
    assert (outcome.content, [name for name, _ in outcome.named]) == ("", ["f"] * len(calls))
    assert [json.loads(arguments) for _, arguments in outcome.named] == calls


def test_a_long_value_takes_linear_time() -> None:
    """Values of 400,000 characters come through piece by piece, all of them, whatever their type."""
    for key, value in (("s", "<p" * 200_000), ("a", ["<p" * 200_000])):
        ((_, arguments),) = parsed(coder, written({key: value})).named
        assert json.loads(arguments) == {key: value}
