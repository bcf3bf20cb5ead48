"""Folding: which differences do not count, and the way back to the original's characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tokenizer.filters.folding import Folder, fold_character


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Straße", "strasse"),
        ("CAFÉ", "cafe"),
        ("cafe\u0301", "cafe"),
        ("ｃａｆｅ", "cafe"),
        ("ﬁne", "fine"),
        ("İstanbul", "istanbul"),
        ("ΆΛΦΑ", "αλφα"),
        ("Ёлка", "елка"),
        ("b\u200bad\u00ad", "bad"),
        ("a\u00a0b", "a b"),
        ("각", "각"),
        ("が", "が"),
        ("कु", "कु"),
        ("ที่", "ที่"),
        ("①②", "12"),
    ],
)
def test_folds(text: str, folded: str) -> None:
    """Case, width, accents, ligatures and format characters do not count; signs that are no ornament do."""
    assert Folder().fold(text).text == folded


@given(st.text(max_size=20), st.text(max_size=20))
def test_each_character_folds_by_itself(first: str, second: str) -> None:
    """A text folds to what its parts fold to, wherever it is cut, and the fold of a fold is itself for letters."""
    folder = Folder()
    assert folder.fold(first + second).text == folder.fold(first).text + folder.fold(second).text


@given(st.text(max_size=20))
def test_origins_lead_back(text: str) -> None:
    """The piece of the original that a folded character points to folds to a text with that character."""
    folded = Folder().fold(text)
    for position, character in enumerate(folded.text):
        start, end = folded.start(position, len(text)), folded.end(position + 1)
        assert end == start + 1
        assert character in fold_character(text[start])
    assert folded.start(len(folded.text), len(text)) == len(text)


@given(st.characters())
def test_composed_and_decomposed_letters_with_accents_fold_alike(character: str) -> None:
    """However a Latin, Greek or Cyrillic letter with accents is written, it folds to the same."""
    if unicodedata.name(character, "").split(" ")[0] not in ("LATIN", "GREEK", "CYRILLIC"):
        return
    apart = unicodedata.normalize("NFD", character)
    assert Folder().fold(apart).text == Folder().fold(character).text
