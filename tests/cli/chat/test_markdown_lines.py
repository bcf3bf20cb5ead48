"""Markdown as a terminal gets it."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.chat.markdown_blocks import markdown_parser
from services.cli.chat.markdown_lines import MarkdownLines

COLOR = re.compile(r"\x1b\[[0-9;]*m")


def shown(text: str, width: int = 60) -> list[str]:
    """The lines of a text, with their colours."""
    return [line.text for line in MarkdownLines(io.StringIO(), markdown_parser()).lines(text, width)]


def bare(text: str, width: int = 60) -> list[str]:
    """The lines of a text, without colours."""
    return [COLOR.sub("", line) for line in shown(text, width)]


@pytest.mark.parametrize(
    "text",
    [
        "\x1b]0;title\x07 and \x9b2J",
        "&#27;[2J &#x9b;2J &#7;",
        "[text](http://a/\x1b]8;;http://b\x07)",
        "```\x1b[31m\n\x1b[2J\x1b[A\n```",
        "`\x1b[2J`",
        "| \x1b[2J |\n|---|\n| \x07 |",
        "- \x1b[2J",
    ],
)
def test_model_cannot_command_the_terminal(text: str) -> None:
    """Wherever it writes control characters, even as entities, the terminal gets colours of ours and nothing else."""
    for line in bare(text):
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", line)


@given(st.text(alphabet=st.sampled_from("\x1b\x9b[]m;27&#x1b;`*_|-># \n\r\x07a()<!:/")), st.integers(8, 40))
def test_no_text_yields_a_control_sequence(text: str, width: int) -> None:
    """For texts made of what Markdown and terminals give a meaning to, only colours are left, in lines that fit."""
    for line in MarkdownLines(io.StringIO(), markdown_parser()).lines(text, width):
        plain = COLOR.sub("", line.text)
        assert not re.search(r"[\x00-\x1f\x7f-\x9f]", plain)
        assert len(plain) <= line.cells <= width


def test_markup_of_the_renderer_is_text() -> None:
    """Square brackets style nothing, and emoji codes stay as they are."""
    assert bare("[bold]a[/bold] :smile: [link=http://a]b[/link]") == ["[bold]a[/bold] :smile: [link=http://a]b[/link]"]


def test_link_shows_where_it_leads() -> None:
    """No address hides behind a text."""
    assert bare("[bank](http://elsewhere)") == ["bank (http://elsewhere)"]


def test_markdown_is_rendered() -> None:
    """Headings, emphasis, lists, code and tables look like what they are, and code can be copied as it is."""
    text = "# Title\n\nsome **bold**\n\n- a\n\n```python\ndef f():\n    return 1\n```\n"
    assert bare(text) == ["Title", "", "some bold", "", " • a", "", "def f():", "    return 1"]
    assert "\x1b[1mbold\x1b[0m" in "".join(shown(text))
