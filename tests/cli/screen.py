"""A terminal in memory: what a user sees, and what has scrolled off."""

from __future__ import annotations

import re

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([^\x1b])")


class Screen:
    """Obeys line ends, cursor up, erasing below, colours (which it forgets) and wrapping; refuses all else.

    Args:
        columns: of each line.
        rows: that are seen at once.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.columns = columns
        self.rows = rows
        self._lines = [""]
        self._row = 0
        self._column = 0

    def write(self, text: str) -> None:
        """Take what the terminal is sent."""
        at = 0
        while at < len(text):
            found = _PIECE.match(text, at)
            assert found, f"an unknown control sequence: {text[at : at + 10]!r}"
            at = found.end()
            if found[3]:
                self._put(found[3])
            else:
                self._obey(found[1], found[2])

    @property
    def lines(self) -> list[str]:
        """All lines from the first, scrolled off or not, without white space at their ends."""
        return [line.rstrip() for line in self._lines]

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
            return
        assert character == "\n" or character.isprintable(), f"a control character: {character!r}"
        if character == "\n" or self._column == self.columns:
            self._row += 1
            self._column = 0
            if self._row == len(self._lines):
                self._lines.append("")
        if character != "\n":
            line = self._lines[self._row].ljust(self._column)
            self._lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
            self._column += 1

    def _obey(self, parameter: str, final: str) -> None:
        if final == "A":
            first_seen = max(0, len(self._lines) - self.rows)
            self._row = max(first_seen, self._row - int(parameter or 1))
        elif final == "J":
            assert parameter in ("", "0")
            self._lines[self._row] = self._lines[self._row][: self._column]
            del self._lines[self._row + 1 :]
        else:
            assert final == "m", f"an unknown control sequence: {parameter!r}{final}"
