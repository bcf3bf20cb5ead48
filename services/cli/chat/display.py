"""Where a conversation is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from services.cli.answer_stream import Piece
from services.cli.control_text import printable, printable_line


class AnswerView(Protocol):
    """One answer on the display, as it comes."""

    def take(self, piece: Piece) -> None:
        """Show the next piece. Its text may hold anything."""

    def close(self) -> None:
        """Show all that is left, and leave the cursor at the start of a line. To be called once, however it ended."""


class Display(Protocol):
    """Shows what a conversation has to tell."""

    def answer(self) -> AnswerView:
        """Begin an answer."""

    def note(self, line: str) -> None:
        """Show one line about what happened."""

    def show(self, text: str) -> None:
        """Show what was asked for, in one or more lines."""


class PlainDisplay:
    """Text as it comes, and nothing that only a terminal understands.

    Args:
        write: takes what is shown at once.
        note: takes a line about it; None writes it in brackets.
        thinks: whether the model's thinking is shown as well.
    """

    def __init__(
        self, write: Callable[[str], None], note: Callable[[str], None] | None = None, thinks: bool = False
    ) -> None:
        self._write = write
        self._note = note or (lambda line: write(f"[{line}]\n"))
        self._thinks = thinks

    def answer(self) -> AnswerView:
        """Begin an answer."""
        return _PlainAnswer(self._write, self._thinks)

    def note(self, line: str) -> None:
        """Show one line about what happened."""
        self._note(printable_line(line))

    def show(self, text: str) -> None:
        """Show what was asked for, in one or more lines."""
        self._write(f"{printable(text)}\n")


class _PlainAnswer:
    def __init__(self, write: Callable[[str], None], thinks: bool) -> None:
        self._write = write
        self._thinks = thinks
        self._is_thinking = False
        self._last = "\n"

    def take(self, piece: Piece) -> None:
        if piece.reasoning and self._thinks:
            if not self._is_thinking:
                self._put("[thinking]\n")
                self._is_thinking = True
            self._put(printable(piece.reasoning))
        if piece.text:
            if self._is_thinking:
                self.close()
                self._put("[answer]\n")
                self._is_thinking = False
            self._put(printable(piece.text))

    def close(self) -> None:
        if not self._last.endswith("\n"):
            self._put("\n")

    def _put(self, text: str) -> None:
        if text:
            self._write(text)
            self._last = text[-1]
