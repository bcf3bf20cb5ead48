"""A model as this tier sees it."""

from __future__ import annotations

from dataclasses import dataclass

from services.tokenizer.text_tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class TextModel:
    """A model's name, its tokenizer and its limit."""

    name: str
    tokenizer: TextTokenizer
    context_length: int | None
    """Most tokens of prompt and output together; None while the engine does not tell."""
