"""Patterns: RE2, whose time is linear in the text.

RE2 tells nothing of matches that have only begun. So each pattern comes with a second one, for what it may begin with,
and a match of that at the text's end is what more text may complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import re2

from services.tokenizer.filters.finder import Occurrence
from services.tokenizer.filters.pattern_syntax import NO_WORD_CHARACTER, PatternError
from services.tokenizer.filters.pattern_tree import Node

_MEMORY_BYTES = 8 << 20
# Stand for the character before a text, and for its end.
_WORD, _NO_WORD = "a", " "


class RulePattern(NamedTuple):
    """A pattern of a rule.

    Attributes:
        tree: what it matches.
        rule: position of the rule.
        stops: the first match ends the text.
    """

    tree: Node
    rule: int
    stops: bool


class _Compiled(NamedTuple):
    complete: Any
    begun: Any
    at_end: Any
    rule: int
    stops: bool


class PatternFinder:
    """Finds matches of patterns. A `Finder`.

    Args:
        patterns: at least one.
        whole: a match counts only where the characters before and after it are no part of a word.

    Raises:
        PatternError: one is too large for the engine.
    """

    def __init__(self, patterns: Sequence[RulePattern], whole: bool) -> None:
        self._whole = whole
        edge = NO_WORD_CHARACTER if whole else ""
        self._patterns: list[_Compiled] = []
        sources: list[str] = []
        for tree, rule, stops in patterns:
            complete, beginning = tree.whole(), tree.beginning() or ""
            # A whole match waits for the character after it.
            begun = f"(?:{beginning}|{complete})" if whole else beginning
            sources += [f"{edge}(?:{complete}){edge}", rf"{edge}(?:{begun})\z"]
            self._patterns.append(
                _Compiled(
                    _compile(f"{edge}({complete}){edge}"),
                    _compile(rf"{edge}({begun})\z"),
                    _compile(rf"{edge}({complete}){edge}\z"),
                    rule,
                    stops,
                )
            )
        try:
            self._any = _compile("|".join(sources))
        except PatternError:
            # Too large together: each is asked by itself then.
            self._any = None

    def find(self, text: str, word_before: bool, final: bool, found: list[Occurrence]) -> int:
        """See `Finder`."""
        shift = int(self._whole)
        subject = text
        if self._whole:
            subject = (_WORD if word_before else _NO_WORD) + text + (_NO_WORD if final else "")
        if self._any is not None:
            first = self._any.search(subject)
            # The empty text at the end may always begin a match.
            if first is None or first.start() + shift >= len(subject):
                return len(text)
        open_start = len(text)
        for pattern in self._patterns:
            self._add(pattern, subject, shift, found)
            if not final and (begun := pattern.begun.search(subject)) is not None:
                open_start = min(open_start, begun.start(1) - shift)
        return open_start

    def _add(self, pattern: _Compiled, subject: str, shift: int, found: list[Occurrence]) -> None:
        match = pattern.complete.search(subject)
        if match is not None and pattern.stops:
            end = _first_end(pattern.complete, subject, match.end())
            match = pattern.at_end.search(subject[:end])
            found.append(Occurrence(match.start(1) - shift, match.end(1) - shift, end - shift, pattern.rule))
            return
        while match is not None:
            found.append(Occurrence(match.start(1) - shift, match.end(1) - shift, match.end() - shift, pattern.rule))
            match = pattern.complete.search(subject, match.start() + 1)


def _first_end(pattern: Any, subject: str, end: int) -> int:
    """The least end of a match, given the end of one. A text's longer beginnings match too, so halving finds it."""
    low, high = 1, end
    while low < high:
        middle = (low + high) // 2
        if pattern.search(subject[:middle]) is not None:
            high = middle
        else:
            low = middle + 1
    return low


def _compile(source: str) -> Any:
    options = re2.Options()
    options.longest_match = True
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(source, options)
    except re2.error:
        raise PatternError("is too large for the regex engine; lower its repetitions or split it") from None
