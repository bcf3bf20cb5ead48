"""DeepSeek's calls."""

from __future__ import annotations

import pytest

from services.tokenizer.output_parsers.deepseek import DeepSeekParser
from tests.tokenizer.output_parsers.parsing import Outcome, parsed

FENCED = '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": "```"}\n```<｜tool▁call▁end｜>'
SHORT = '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "```"}<｜tool▁call▁end｜>'


@pytest.mark.parametrize("call", [FENCED, SHORT])
@pytest.mark.parametrize("between", ["", "\n"])
def test_both_shapes(call: str, between: str) -> None:
    """V3's fenced calls and V3.1's bare ones give the same."""
    text = f"I look.<｜tool▁calls▁begin｜>{call}{between}{call}<｜tool▁calls▁end｜>"
    outcome = parsed(DeepSeekParser, text)
    assert (outcome.content, outcome.named) == ("I look.", [("f", '{"a": "```"}')] * 2)


@pytest.mark.parametrize(
    "text",
    [
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁begin｜>no",
        "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\nnothing" + "x" * 400,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a b<｜tool▁sep｜>{}",
        "<｜tool▁calls",
    ],
)
def test_what_is_no_call_is_content(text: str) -> None:
    """Nothing of a malformed call is lost."""
    assert parsed(DeepSeekParser, text) == Outcome(content=text)


def test_text_after_a_call_is_content() -> None:
    """A call that is certain stays one; what does not belong to it is content."""
    outcome = parsed(DeepSeekParser, f"<｜tool▁calls▁begin｜>{SHORT}So.")
    assert (outcome.content, len(outcome.calls)) == ("So.", 1)
