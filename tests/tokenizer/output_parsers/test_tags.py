"""Finding tags."""

from __future__ import annotations

import pytest

from services.tokenizer.output_parsers.tags import Tags


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a<b>c", ("a", "<b>", "c")),
        ("a<bc>d<b>", ("a", "<bc>", "d<b>")),
        ("a<b", ("a", None, "<b")),
        ("a<bx", ("a<bx", None, "")),
        ("<<", ("<", None, "<")),
        ("", ("", None, "")),
    ],
)
def test_split(text: str, found: tuple[str, str | None, str]) -> None:
    """The first tag is found; without one, only the longest suffix that may become one is held."""
    assert Tags("<b>", "<bc>").split(text) == found
