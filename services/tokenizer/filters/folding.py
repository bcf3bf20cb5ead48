"""Texts without the differences of case, width and accents, with the way back to the original's characters.

Each character is folded by itself, so that what a text folds to does not depend on where it was split.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

# Canonical combining classes of Unicode: marks above, below and across a letter, as Latin, Greek and Cyrillic have
# them. Vowel signs and points of other scripts, which are no ornament, have lower ones.
_OVERLAY = 1
_FIRST_ACCENT = 200


class Folded(NamedTuple):
    """A folded text. `origins[i]` is the position of the character that gave character i; None: i itself."""

    text: str
    origins: list[int] | None

    def start(self, position: int, length: int) -> int:
        """Position in the original, of `length` characters, of the character that gave the one at `position`."""
        if self.origins is None:
            return position
        return self.origins[position] if position < len(self.origins) else length

    def end(self, position: int) -> int:
        """Position in the original after the character that gave the one before `position`."""
        return position if self.origins is None else self.origins[position - 1] + 1


class _Table(dict[str, str]):
    def __missing__(self, character: str) -> str:
        folded = self[character] = fold_character(character)
        return folded


def fold_character(character: str) -> str:
    """What a character folds to: no, one or several characters.

    It is decomposed for compatibility (NFKD), which also makes full-width forms plain; accents and format characters,
    which have no width, are left out; case is folded; the rest is composed again (NFKC).
    """
    kept = (part for part in unicodedata.normalize("NFKD", character) if not _is_ornament(part))
    return unicodedata.normalize("NFKC", "".join(kept).casefold())


def _is_ornament(character: str) -> bool:
    combining = unicodedata.combining(character)
    return combining == _OVERLAY or combining >= _FIRST_ACCENT or unicodedata.category(character) == "Cf"


class Folder:
    """Folds texts; remembers each character that it met."""

    def __init__(self) -> None:
        self._table = _Table()

    def fold(self, text: str) -> Folded:
        """Fold a text."""
        if text.isascii():
            return Folded(text.lower(), None)
        table = self._table
        pieces = [table[character] for character in text]
        folded = "".join(pieces)
        if all(len(piece) == 1 for piece in pieces):
            return Folded(folded, None)
        return Folded(folded, [position for position, piece in enumerate(pieces) for _ in piece])


def is_word_character(character: str) -> bool:
    """Whether a character is part of a word: a letter, mark or digit, or `_`."""
    return character == "_" or unicodedata.category(character)[0] in "LMN"
