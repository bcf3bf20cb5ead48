"""Markdown as it comes: what is finished, and what may still change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

# A block of code that is still open is coloured anew with each line, so a long one is taken apart.
_MOST_CODE_LINES = 200


@dataclass(frozen=True, slots=True)
class Split:
    """A text in two.

    Args:
        finished: blocks that nothing written later can change; empty where there are none.
        rest: what may still change.
        is_within_block: whether the rest goes on with the block that `finished` ends with.
    """

    finished: str
    rest: str
    is_within_block: bool = False


def markdown_parser() -> MarkdownIt:
    """Return a parser of what models write, in which no text is lost.

    HTML is text. So are images and link references: a terminal shows neither, and their addresses would vanish.
    """
    return MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"]).disable(["image", "reference"])


def split_finished(text: str, parser: MarkdownIt) -> Split:
    """Take apart what nothing written after `text` can change.

    That is all before the last block, among those of whole lines: CommonMark decides line by line, and a block that
    another one follows is closed (https://spec.commonmark.org/0.31.2/#phase-1-block-structure).
    """
    lines = [f"{line}\n" for line in text.split("\n")[:-1]]
    tokens = parser.parse("".join(lines))
    blocks = [token for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
    if not blocks:
        return Split("", text)
    last = blocks[-1]
    start = (last.map or [0])[0]
    if len(blocks) > 1:
        cut = sum(map(len, lines[:start]))
        return Split(text[:cut], text[cut:])
    if last.type == "fence" and len(lines) - start > _MOST_CODE_LINES and not _is_closed(last, lines):
        cut = sum(map(len, lines[: start + _MOST_CODE_LINES]))
        return Split(f"{text[:cut]}{last.markup}\n", lines[start] + text[cut:], is_within_block=True)
    return Split("", text)


def _is_closed(fence: Token, lines: Sequence[str]) -> bool:
    start, end = fence.map or [0, 0]
    closing = lines[end - 1].strip()
    return end - 1 > start and closing.startswith(fence.markup) and not closing.strip(fence.markup[0])
