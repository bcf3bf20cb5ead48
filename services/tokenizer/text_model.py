"""A model as this tier sees it."""

from __future__ import annotations

from dataclasses import dataclass

from services.tokenizer.text_tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class TextModel:
    """A model's name and its tokenizer."""

    name: str
    tokenizer: TextTokenizer
