"""Mistral's calls."""

from __future__ import annotations

import pytest

from services.tokenizer.output_parsers.mistral import MistralParser
from services.tokenizer.output_parsers.port import short_call_id
from tests.tokenizer.output_parsers.parsing import Outcome, parsed

CALLS = [("f", '{"a": "[TOOL_CALLS]"}'), ("g", "{}")]


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS][{"name": "f", "arguments": {"a": "[TOOL_CALLS]"}}, {"name": "g", "arguments": {}}]',
        '[TOOL_CALLS] [{"arguments": {"a": "[TOOL_CALLS]"}, "name": "f", "id": "abc"}, {"name": "g"}]',
        '[TOOL_CALLS]f{"a": "[TOOL_CALLS]"}[TOOL_CALLS]g{}',
        '[TOOL_CALLS]f[ARGS]{"a": "[TOOL_CALLS]"}\n[TOOL_CALLS]g[CALL_ID]aB3[ARGS]{}',
    ],
)
def test_both_shapes(text: str) -> None:
    """The list of older versions and the calls of newer ones give the same."""
    outcome = parsed(MistralParser, text)
    assert (outcome.content, outcome.named) == ("", CALLS)
    assert parsed(MistralParser, f"First this.{text}").content == "First this."


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS]",
        "[TOOL_CALLS] none, sorry " + "x" * 400,
        "[TOOL_CALLS]two words{}",
        "[TOOL_CALLS][1, 2]",
        "[TOOL_CALLS]f[ARGS]",
        "[TOOL",
    ],
)
def test_what_is_no_call_is_content(text: str) -> None:
    """Nothing of a malformed call is lost."""
    assert parsed(MistralParser, text) == Outcome(content=text)


def test_ids_are_those_that_the_template_accepts() -> None:
    """Mistral's templates refuse ids that are not nine letters and digits."""
    made = {short_call_id() for _ in range(100)}
    assert len(made) == 100
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in made)
