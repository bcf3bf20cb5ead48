"""Reasoning before the answer, between a pair of tags."""

from __future__ import annotations

from services.tokenizer.output_parsers.json_call import BLANKS
from services.tokenizer.output_parsers.port import Content, OutputParser, Part, Reasoning
from services.tokenizer.output_parsers.tags import Tags

# White space that may stand before the opening tag.
_MAX_BLANKS = 16


class ContentParser:
    """All text is content."""

    def feed(self, text: str) -> list[Part]:
        """The text."""
        return [Content(text)] if text else []

    def flush(self) -> list[Part]:
        """Nothing: no text was held back."""
        return []


class ReasoningParser:
    """`<think>…</think>` at the start of an output; what follows goes to the next parser.

    An opening tag later in the text is content: models write of it.

    Args:
        opening, closing: the tags.
        opened: the prompt has opened the reasoning.
        following: takes the answer's text.
    """

    def __init__(self, opening: str, closing: str, opened: bool, following: OutputParser) -> None:
        self._opening = Tags(opening)
        self._closing = Tags(closing)
        self._following = following
        self._reasons = opened
        self._may_open = not opened
        self._unread = ""

    def feed(self, text: str) -> list[Part]:
        """Parts that are certain after this text."""
        if not self._may_open and not self._reasons:
            return self._following.feed(text)
        self._unread += text
        if self._may_open:
            before, tag, rest = self._opening.split(self._unread)
            blank = not before.strip(BLANKS) and len(before) <= _MAX_BLANKS
            if blank and tag is None:
                return []
            self._may_open = False
            if not blank:
                return self._following.feed(self._taken())
            self._reasons = True
            self._unread = rest
        return self._reasoning()

    def flush(self) -> list[Part]:
        """The rest at the end of the stream."""
        rest = self._taken()
        if self._reasons:
            return [Reasoning(rest)] if rest else []
        return [*(self._following.feed(rest) if rest else ()), *self._following.flush()]

    def _reasoning(self) -> list[Part]:
        before, tag, self._unread = self._closing.split(self._unread)
        parts: list[Part] = [Reasoning(before)] if before else []
        if tag is not None:
            self._reasons = False
            answer = self._taken()
            if answer:
                parts += self._following.feed(answer)
        return parts

    def _taken(self) -> str:
        text, self._unread = self._unread, ""
        return text
