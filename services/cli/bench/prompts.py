"""Prompts of a wanted length, different from each other in their first words and the same for the same seed.

What follows the first words is cut from one long random text: so a prompt of 100,000 characters costs microseconds
while streams are being timed, and no cache of prefixes can know it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Generic, TypeVar

from services.cli.bench.options import Options

# Each is one token in the vocabularies of the usual models when a space stands before it.
_WORD_LIST = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which"
    " one you were all her she there would their we him been has when who will no more if out so up said what its"
    " about than into them can only other time new some could these two may first then do any like my now over such"
    " our man me even most made after also did many off before must well back through years much where your way down"
    " should because long each just state those people too how little good world make very year still see own work"
    " men day get here old life both between being under three never know same last another while us might great go"
    " come since against right came take used himself few house use place during high without again home around small"
    " however found part school once general upon every left war don does got united number hand course water until"
    " away always public fact less though put thing almost city enough night end far called head yet better told"
)
_WORDS = _WORD_LIST.split()
_FRESH = 12
_POOL = 40_000

Prompt = str | list[int]
_Unit = TypeVar("_Unit")


class Prompts:
    """Makes prompts.

    Args:
        options: lengths, kind and shared beginning of the prompts.
        random_source: where all chance comes from.
    """

    def __init__(self, options: Options, random_source: random.Random) -> None:
        self._options = options
        self._random = random_source
        prefix_tokens = options.shared_prefix.tokens if options.shared_prefix else 0
        self._words = _Units(_WORDS, random_source)
        self._prefix = self._words.fresh(prefix_tokens)
        self._ids: _Units[int] | None = None
        self._prefix_ids: list[int] = []
        if options.vocabulary is not None:
            self._ids = _Units(range(options.vocabulary), random_source)
            self._prefix_ids = self._ids.fresh(prefix_tokens)

    def next(self, tokens: int | None = None) -> Prompt:
        """Return the next prompt: text, or token ids.

        Args:
            tokens: its length, if it is not to be one of those that the options allow.
        """
        shared = self._options.shared_prefix
        has_prefix = shared is not None and self._random.random() < shared.share
        characters = self._options.prompt_characters
        if tokens is None and characters is not None:
            text = self._text(self._random.randint(characters.least, characters.most))
            return " ".join([*self._prefix, text]) if has_prefix else text
        if tokens is None:
            wanted = self._options.prompt_tokens
            tokens = self._random.randint(wanted.least, wanted.most)
        if self._ids is not None:
            return (self._prefix_ids if has_prefix else []) + self._ids.take(tokens)
        return " ".join((self._prefix if has_prefix else []) + self._words.take(tokens))

    def _text(self, characters: int) -> str:
        # A word and its space have three characters or more.
        text = " ".join(self._words.take(characters // 3 + 1))[:characters]
        # Chat templates strip what they are given.
        return f"{text[:-1]}s" if text.endswith(" ") else text


class _Units(Generic[_Unit]):
    """Random sequences of words or ids."""

    def __init__(self, alphabet: Sequence[_Unit], random_source: random.Random) -> None:
        self._alphabet = alphabet
        self._random = random_source
        self._pool = self.fresh(_POOL)

    def fresh(self, count: int) -> list[_Unit]:
        """Draw each of them."""
        return self._random.choices(self._alphabet, k=count)

    def take(self, count: int) -> list[_Unit]:
        """Draw the first few, and cut the rest from the pool."""
        units = self.fresh(min(count, _FRESH))
        while (missing := count - len(units)) > 0:
            first = self._random.randrange(_POOL)
            units += self._pool[first : first + missing]
        return units
