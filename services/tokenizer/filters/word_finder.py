"""Word lists: Aho and Corasick's automaton (1975), one step a character, whatever the number of words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from services.tokenizer.filters.finder import Occurrence
from services.tokenizer.filters.folding import is_word_character

_NO_STEPS: Mapping[str, int] = {}


class WordFinder:
    """Finds words. A `Finder`.

    Args:
        words: pairs of a word, not empty, and its rule's position.
        whole: a word counts only where the characters before and after it are no part of a word.
    """

    def __init__(self, words: Iterable[tuple[str, int]], whole: bool) -> None:
        self._whole = whole
        # One entry a state; state 0 is the root, where no word has begun.
        steps: list[dict[str, int]] = [{}]
        self._depths = [0]
        self._rules: list[tuple[int, ...]] = [()]
        for word, rule in words:
            state = 0
            for character in word:
                following = steps[state].get(character)
                if following is None:
                    following = len(steps)
                    steps[state][character] = following
                    steps.append({})
                    self._depths.append(self._depths[state] + 1)
                    self._rules.append(())
                state = following
            if rule not in self._rules[state]:
                self._rules[state] = tuple(sorted((*self._rules[state], rule)))
        # Most states end their word; they share one mapping.
        self._steps: list[Mapping[str, int]] = [own or _NO_STEPS for own in steps]
        self._suffixes = [0] * len(steps)
        # The next state on the way of suffixes, itself first, at which a word ends.
        self._endings = [0] * len(steps)
        self._link_suffixes()

    def find(self, text: str, word_before: bool, final: bool, found: list[Occurrence]) -> int:
        """See `Finder`."""
        steps, suffixes, endings = self._steps, self._suffixes, self._endings
        state = 0
        for position, character in enumerate(text):
            following = steps[state].get(character)
            while following is None and state:
                state = suffixes[state]
                following = steps[state].get(character)
            state = following or 0
            if endings[state]:
                self._add(text, position + 1, state, word_before, final, found)
        return len(text) if final else self._open_start(text, state, word_before)

    def _add(self, text: str, end: int, state: int, word_before: bool, final: bool, found: list[Occurrence]) -> None:
        whole = self._whole
        if whole and (is_word_character(text[end]) if end < len(text) else not final):
            return
        ending = self._endings[state]
        while ending:
            start = end - self._depths[ending]
            if not whole or self._may_start(text, start, word_before):
                found += [Occurrence(start, end, end + whole, rule) for rule in self._rules[ending]]
            ending = self._endings[self._suffixes[ending]]

    def _open_start(self, text: str, state: int, word_before: bool) -> int:
        """Where the longest suffix begins that more text may make a word, or that waits for what follows it."""
        whole = self._whole
        while state:
            start = len(text) - self._depths[state]
            if (self._steps[state] or (whole and self._rules[state])) and (
                not whole or self._may_start(text, start, word_before)
            ):
                return start
            state = self._suffixes[state]
        return len(text)

    def _may_start(self, text: str, start: int, word_before: bool) -> bool:
        return not (is_word_character(text[start - 1]) if start else word_before)

    def _link_suffixes(self) -> None:
        steps, suffixes, endings = self._steps, self._suffixes, self._endings
        waiting = deque((state, 0) for state in steps[0].values())
        while waiting:
            state, suffix = waiting.popleft()
            suffixes[state] = suffix
            endings[state] = state if self._rules[state] else endings[suffix]
            for character, following in steps[state].items():
                shorter = suffix
                while shorter and character not in steps[shorter]:
                    shorter = suffixes[shorter]
                waiting.append((following, steps[shorter].get(character, 0)))
