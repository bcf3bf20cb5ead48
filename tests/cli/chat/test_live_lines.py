"""Lines that change in place, on a terminal in memory."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from services.cli.chat.live_lines import Line, LiveLines, Size
from tests.cli.screen import Screen


def live(screen: Screen) -> LiveLines:
    """Live lines on a screen."""
    return LiveLines(screen.write, lambda: Size(screen.columns, screen.rows))


def as_lines(texts: Sequence[str]) -> list[Line]:
    """Lines of plain text."""
    return [Line(text, len(text)) for text in texts]


TEXTS = st.lists(st.text("abc ", max_size=12).map(str.rstrip), max_size=6)


@given(st.lists(TEXTS, min_size=1))
def test_screen_shows_the_last_update(updates: list[list[str]]) -> None:
    """Whatever was shown before: while all fits on the screen, exactly the last lines are there."""
    screen = Screen(12, 10)
    lines = live(screen)
    for texts in updates:
        lines.update(as_lines(texts))
    assert screen.lines == [*updates[-1], ""]


@given(st.lists(st.text("abc", min_size=1, max_size=9), max_size=60), st.integers(3, 8))
def test_growing_text_is_in_the_scrollback_once(words: list[str], rows: int) -> None:
    """Lines that grow far beyond the screen, character by character, are all there once and in order."""
    screen = Screen(10, rows)
    lines = live(screen)
    for count in range(len(words)):
        for characters in range(1, len(words[count]) + 1):
            lines.update(as_lines([*words[:count], words[count][:characters]]))
    assert screen.lines == [*words, ""]


def test_only_what_differs_is_written() -> None:
    """A line that stays is not sent again, so nothing flickers."""
    written: list[str] = []
    lines = LiveLines(written.append, lambda: Size(80, 24))
    lines.update(as_lines(["one", "two", "thr"]))
    lines.update(as_lines(["one", "two", "three"]))
    lines.update(as_lines(["one", "two", "three"]))
    assert written == ["one\ntwo\nthr\n", "\x1b[1A\r\x1b[Jthree\n"]


def test_committed_lines_stay() -> None:
    """What was committed is not touched by later updates."""
    screen = Screen(20, 10)
    lines = live(screen)
    lines.update(as_lines(["one", "two"]))
    lines.commit()
    lines.update(as_lines(["three"]))
    lines.update(as_lines(["four"]))
    assert screen.lines == ["one", "two", "four", ""]


def test_narrowed_terminal_is_counted_as_it_wraps() -> None:
    """A line that a narrower terminal shows in two rows is gone back over by two."""
    written: list[str] = []
    columns = 20
    lines = LiveLines(written.append, lambda: Size(columns, 24))
    lines.update(as_lines(["a" * 15, "b"]))
    columns = 10
    lines.update(as_lines(["a" * 9, "aaaaaa"]))
    assert written[-1] == f"\x1b[3A\r\x1b[J{'a' * 9}\naaaaaa\n"


def test_what_scrolled_off_is_left_as_it_is() -> None:
    """Lines above the screen cannot be changed: they stay, and nothing is shown twice."""
    screen = Screen(20, 4)
    lines = live(screen)
    lines.update(as_lines(["1", "2", "3", "4", "5", "6"]))
    lines.update(as_lines(["one", "2", "3", "4", "5", "six"]))
    assert screen.lines == ["1", "2", "3", "4", "5", "six", ""]
