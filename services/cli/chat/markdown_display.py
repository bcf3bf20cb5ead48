"""A terminal that shows answers as Markdown while they come."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import TextIO

from services.cli.answer_stream import Piece
from services.cli.chat.display import AnswerView
from services.cli.chat.live_lines import LiveLines, Size
from services.cli.chat.markdown_blocks import markdown_parser, split_finished
from services.cli.chat.markdown_lines import MarkdownLines
from services.cli.control_text import printable, printable_line

# Faster is not seen. Where rendering takes long, it may take a fifth of the time.
_PAUSE_SECONDS = 0.04
_PAUSE_SHARE = 4.0


class MarkdownDisplay:
    """Shows finished blocks for good and renders the last block anew as it grows.

    Args:
        stream: the terminal.
        size: tells its size; None asks the system.
    """

    def __init__(self, stream: TextIO, size: Callable[[], Size] | None = None) -> None:
        self._stream = stream
        self._size = size or (lambda: _terminal_size(stream))
        self._parser = markdown_parser()
        self._lines = MarkdownLines(stream, self._parser)

    def answer(self) -> AnswerView:
        """Begin an answer. Its text is to be written while an event loop runs."""
        return _MarkdownAnswer(self)

    def note(self, line: str) -> None:
        """Show one line about what happened."""
        self.write(self._lines.dim(f"[{printable_line(line)}]") + "\n")

    def show(self, text: str) -> None:
        """Show what was asked for, in one or more lines."""
        self.write(f"{printable(text)}\n")

    def write(self, text: str) -> None:
        """Send the terminal a text as it is."""
        self._stream.write(text)
        self._stream.flush()

    def dim(self, text: str) -> str:
        """Return a text as it is shown dimly."""
        return self._lines.dim(text)

    def live(self) -> LiveLines:
        """Return lines that may change."""
        return LiveLines(self.write, self._size)

    def render(self, text: str, lines: LiveLines) -> str:
        """Show a Markdown text in place of what `lines` show, and return the part of it that may still change."""
        # One column is left free, for characters that a terminal draws wider than they are said to be.
        width = max(8, self._size().columns - 1)
        while (split := split_finished(text, self._parser)).finished:
            lines.update(self._lines.lines(split.finished, width))
            lines.commit()
            if not split.is_within_block:
                self.write("\n")
            text = split.rest
        lines.update(self._lines.lines(text, width))
        return text


class _MarkdownAnswer:
    def __init__(self, display: MarkdownDisplay) -> None:
        self._display = display
        self._live = display.live()
        self._rest = ""
        self._last_thought = ""
        self._may_render = 0.0
        self._later: asyncio.TimerHandle | None = None

    def take(self, piece: Piece) -> None:
        if piece.reasoning:
            self._display.write(self._display.dim(piece.reasoning))
            self._last_thought = piece.reasoning[-1]
        if piece.text:
            if self._last_thought:
                self._end_thinking("\n")
            self._add(piece.text)

    def close(self) -> None:
        self._end_thinking("")
        self._render()
        self._live.commit()

    def _add(self, text: str) -> None:
        self._rest += printable(text)
        wait = self._may_render - time.monotonic()
        if wait <= 0:
            self._render()
        elif self._later is None:
            # What waits is shown even if nothing comes after it.
            self._later = asyncio.get_running_loop().call_later(wait, self._render)

    def _render(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        begin = time.monotonic()
        self._rest = self._display.render(self._rest, self._live)
        end = time.monotonic()
        self._may_render = end + max(_PAUSE_SECONDS, (end - begin) * _PAUSE_SHARE)

    def _end_thinking(self, gap: str) -> None:
        if self._last_thought:
            self._display.write(("" if self._last_thought == "\n" else "\n") + gap)
            self._last_thought = ""


def _terminal_size(stream: TextIO) -> Size:
    columns, rows = os.get_terminal_size(stream.fileno())
    # A terminal that has not been told its size says 0.
    return Size(columns or 80, rows or 24)
