"""Finding what of a growing Markdown text is finished."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.cli.chat.markdown_blocks import markdown_parser, split_finished

HEADINGS = ("# Head", "===", "---")
LISTS = ("- a", "- b", "  inner", "1. one", "2. two")
CODE = ("```py", "```", "~~~", "x = 1", "    code")
OTHERS = ("text", "more *text*", "", "> quote", "| a | b |", "|---|---|", "| 1 | 2 |", "<div>", "[a]: http://b")
LINES = st.sampled_from([*HEADINGS, *LISTS, *CODE, *OTHERS])


def kinds(text: str) -> list[tuple[str, str]]:
    """The blocks of a text and what they hold."""
    return [(token.type, token.content) for token in markdown_parser().parse(text)]


@given(st.lists(LINES, max_size=14), st.integers(1, 7))
def test_later_text_changes_nothing_that_is_finished(lines: list[str], step: int) -> None:
    """However a text is cut into pieces, its finished parts read as they do within the whole text."""
    text = "\n".join(lines)
    finished: list[tuple[str, str]] = []
    rest = ""
    for at in range(0, len(text), step):
        split = split_finished(rest + text[at : at + step], markdown_parser())
        finished += kinds(split.finished)
        rest = split.rest
    assert finished + kinds(rest) == kinds(text)


def test_last_block_is_not_finished() -> None:
    """A paragraph may become a heading, and a list may go on, so only what stands before them is finished."""
    parser = markdown_parser()
    assert split_finished("one\n\ntwo\n", parser).finished == "one\n\n"
    assert split_finished("one\n\ntwo", parser).finished == ""
    assert split_finished("- a\n\n- b\n", parser).finished == ""


def test_long_code_is_taken_apart() -> None:
    """Code that is still open is finished piece by piece, and the rest is code of the same kind."""
    code = "".join(f"line_{number}\n" for number in range(250))
    split = split_finished(f"```python\n{code}", markdown_parser())
    assert split.is_within_block
    assert split.finished.endswith("line_198\n```\n")
    assert split.rest.startswith("```python\nline_199\n")
    assert split.rest.endswith("line_249\n")
    assert not split_finished(f"```python\n{code}```\n", markdown_parser()).finished


def test_no_text_is_read_as_something_invisible() -> None:
    """HTML, images and link references stay text."""
    shown = "".join(content for _, content in kinds("<b>x</b> ![alt](http://a)\n\n<div>y</div>\n\n[a]: http://b\n"))
    assert all(part in shown for part in ("<b>x</b>", "alt", "http://a", "<div>y</div>", "[a]: http://b"))
