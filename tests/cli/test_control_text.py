"""Text from models, made fit for a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.control_text import printable, printable_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;title\x07", "�[2J�]0;title�"),
        ("\x9b31mred", "�31mred"),
        ("a\tb\nc", "a\tb\nc"),
        ("one\r\ntwo\rthree", "one\ntwothree"),
        ("\x00\x08\x7f", "���"),
        ("user\u202egnp.exe\u2066", "user�gnp.exe�"),
        ("日本語 🦙 é", "日本語 🦙 é"),
    ],
)
def test_controls_are_replaced(text: str, shown: str) -> None:
    """C0, DEL, C1 and bidirectional controls become U+FFFD, a carriage return nothing; all else stays."""
    assert printable(text) == shown


@given(st.lists(st.text()))
def test_pieces_become_what_the_whole_becomes(pieces: list[str]) -> None:
    """No split lets anything through, and no control character but line ends and tabs is left."""
    shown = printable("".join(pieces))
    assert "".join(map(printable, pieces)) == shown
    assert {character for character in shown if unicodedata.category(character) == "Cc"} <= {"\n", "\t"}


def test_a_line_stays_one_line() -> None:
    """White space of any kind becomes one space."""
    assert printable_line("a\n b\x1b\t c ") == "a b� c"
