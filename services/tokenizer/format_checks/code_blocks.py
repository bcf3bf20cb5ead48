"""Whether the fenced code blocks of a Markdown text are closed, and brackets and quotes in them in pairs.

Fences are those of https://spec.commonmark.org/0.31.2/#fenced-code-blocks, and they may stand in the items of lists
at any depth, since this looks at lines and not at what contains them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.tokenizer.format_checks.code_text import CodeText
from services.tokenizer.format_checks.languages import PLAIN, language_of
from services.tokenizer.format_checks.port import Fault

# Longer lines are no fences.
_MAX_FENCE_LINE_CHARS = 256
# White space, and markers of lists and quotes.
_BEFORE_FENCE = r"[ \t]*(?:(?:(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t])|>)[ \t]*)*"
_OPENING = re.compile(rf"({_BEFORE_FENCE})(`{{3,}}(?=[^`]*$)|~{{3,}})(.*)")
_MAY_OPEN = re.compile(rf"{_BEFORE_FENCE}(?:$|[-*+]$|[0-9]{{1,9}}[.)]?$|`{{1,2}}$|~{{1,2}}$|`{{3}}|~{{3}})")
_CLOSING = re.compile(r"([ \t>]*)(`{3,}|~{3,})[ \t\r]*")
_MAY_CLOSE = re.compile(r"[ \t>]*(?:`*|~*)[ \t\r]*")
# How much further to the right than the opening fence one may close it.
_MAX_INDENT = 3


@dataclass(slots=True)
class _Block:
    """An open code block.

    Attributes:
        fence: its opening fence.
        before: what stands before that in its line.
        position: characters of the text before it.
        code: checks what is in the block.
        faulty: a fault of it was told.
    """

    fence: str
    before: str
    position: int
    code: CodeText
    faulty: bool = False

    def is_closed_by(self, line: str) -> bool:
        found = _CLOSING.fullmatch(line) if len(line) <= _MAX_FENCE_LINE_CHARS else None
        if found is None:
            return False
        before, fence = found.groups()
        return (
            fence[0] == self.fence[0]
            and len(fence) >= len(self.fence)
            and len(before) <= len(self.before) + _MAX_INDENT
            and (">" in self.before or ">" not in before)
        )


class CodeBlocks:
    """A `FormatChecker`: finds one fault a block at most."""

    def __init__(self) -> None:
        self._before = 0
        # The line so far while it may be a fence, and where it begins; None: it is none.
        self._line: str | None = ""
        self._line_at = 0
        self._block: _Block | None = None

    def feed(self, text: str) -> Sequence[Fault]:
        """Take the next characters; return the faults that they show."""
        faults: list[Fault] = []
        at = 0
        while at < len(text):
            end = text.find("\n", at)
            piece, line_ends = (text[at:], False) if end < 0 else (text[at:end], True)
            if self._block is None:
                self._outside(piece, line_ends)
            else:
                fault = self._inside(self._block, piece, line_ends, self._before + at + len(piece))
                if fault is not None:
                    faults.append(fault)
            at += len(piece) + line_ends
            if line_ends:
                self._line, self._line_at = "", self._before + at
        self._before += len(text)
        return faults

    def finish(self) -> Sequence[Fault]:
        """Return the fault of a block that is not closed."""
        if self._block is None:
            # The last line needs no end.
            self._outside("", True)
        elif self._line is not None and self._block.is_closed_by(self._line):
            fault = self._close(self._block, self._before)
            return () if fault is None else (fault,)
        block = self._block
        if block is None or block.faulty:
            return ()
        return (Fault(block.position, "the code block is not closed", self._before),)

    def _outside(self, piece: str, line_ends: bool) -> None:
        if self._line is None:
            return
        line = self._line + piece
        if len(line) > _MAX_FENCE_LINE_CHARS or _MAY_OPEN.match(line) is None:
            self._line = None
        elif not line_ends:
            self._line = line
        elif found := _OPENING.fullmatch(line.rstrip("\r")):
            before, fence, info = found.groups()
            position = self._line_at + len(before)
            # Each line of a quoted block begins with the quote's marker.
            language = PLAIN if ">" in before else language_of(info)
            self._block = _Block(fence, before, position, CodeText(language, self._line_at + len(line) + 1))

    def _inside(self, block: _Block, piece: str, line_ends: bool, end: int) -> Fault | None:
        """Take a piece of a line that ends at `end`."""
        code = piece
        if self._line is not None:
            line = self._line + piece
            if line_ends and block.is_closed_by(line):
                return self._close(block, end)
            if not line_ends and len(line) <= _MAX_FENCE_LINE_CHARS and _MAY_CLOSE.fullmatch(line):
                self._line = line
                return None
            self._line, code = None, line
        fault = block.code.feed(code + "\n" if line_ends else code)
        if fault is not None:
            block.faulty = True
        return fault

    def _close(self, block: _Block, end: int) -> Fault | None:
        self._block = None
        fault = block.code.finish()
        return None if fault is None else Fault(fault.position, fault.message, end)
