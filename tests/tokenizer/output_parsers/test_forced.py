"""Outputs that are calls and nothing else."""

from __future__ import annotations

from services.tokenizer.output_parsers.forced import ArgumentsParser, CallListParser
from services.tokenizer.output_parsers.port import NewId, OutputParser
from tests.tokenizer.output_parsers.parsing import Outcome, parsed


def test_a_list_of_calls() -> None:
    """The list that structured output enforces gives its calls and no content."""
    text = '[{"name": "f", "parameters": {"a": 1}}, {"name":"g","parameters":{}}\n]'
    assert parsed(CallListParser, text) == Outcome("", "", [("id0", "f", '{"a": 1}'), ("id1", "g", "{}")])


def test_a_list_cut_off_keeps_its_pieces() -> None:
    """An output cut off inside a call keeps what came of the arguments, and loses no other text."""
    assert parsed(CallListParser, '[{"name": "f", "parameters": {"a": "b').named == [("f", '{"a": "b')]
    assert parsed(CallListParser, '[{"name": "f').content == '[{"name": "f'


def test_the_arguments_of_a_named_function() -> None:
    """All text is the arguments of one call."""

    def parser(new_id: NewId) -> OutputParser:
        return ArgumentsParser("f", new_id)

    assert parsed(parser, '{"a": 1}') == Outcome("", "", [("id0", "f", '{"a": 1}')])
    assert parsed(parser, "") == Outcome()
