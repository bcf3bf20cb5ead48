"""The last lines of a terminal, which may still change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line as it is written.

    Args:
        text: with the sequences that colour it.
        cells: columns that it takes.
    """

    text: str
    cells: int


@dataclass(frozen=True, slots=True)
class Size:
    """A terminal's."""

    columns: int
    rows: int


class LiveLines:
    """Writes lines and changes them in place, touching only those that differ.

    What has scrolled off the screen cannot be changed any more and is left as it is, so nothing shows up twice in the
    scrollback. The cursor rests at the start of the line below.

    Args:
        write: takes what the terminal is sent, each change as one text.
        size: tells the terminal's size.
    """

    def __init__(self, write: Callable[[str], None], size: Callable[[], Size]) -> None:
        self._write = write
        self._size = size
        self._shown: list[Line] = []

    def update(self, lines: Sequence[Line]) -> None:
        """Show these lines in place of those shown so far."""
        size = self._size()
        keep = 0
        for old, new in zip(self._shown, lines, strict=False):
            if old != new:
                break
            keep += 1
        # A narrower terminal wraps what it shows already.
        heights = [max(1, -(-line.cells // max(1, size.columns))) for line in self._shown]
        while sum(heights[keep:]) > size.rows - 1:
            keep += 1
        up = sum(heights[keep:])
        back = f"\x1b[{up}A\r\x1b[J" if up else ""
        fresh = "".join(f"{line.text}\n" for line in lines[keep:])
        if back or fresh:
            self._write(back + fresh)
        self._shown = [*self._shown[:keep], *lines[keep:]]

    def commit(self) -> None:
        """Leave what is shown for good."""
        self._shown = []
