"""What a filter does to a whole text, by trying every place: slow, and plainly so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.tokenizer.filters.folding import fold_character, is_word_character
from services.tokenizer.filters.pattern_syntax import parse_pattern
from services.tokenizer.filters.rule import Rule
from services.tokenizer.findings import FilterAction, FilterMatch

LONGEST = 24
"""Characters of the longest match that is looked for, folded."""


@dataclass(frozen=True)
class Written:
    """A rule as it is written: words and patterns are not folded yet."""

    action: FilterAction
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    whole_words: bool = False
    fold: bool = False
    mask: str = "█"

    def rule(self, name: str) -> Rule:
        """The same as the service has it."""
        words = tuple(fold(word) if self.fold else word for word in self.words)
        trees = tuple(parse_pattern(pattern, self.fold) for pattern in self.patterns)
        return Rule(name, self.action, words, trees, self.mask, self.whole_words, self.fold)

    def matches(self, text: str) -> bool:
        """Whether a text, folded where the rule says so, is a match."""
        words = [fold(word) if self.fold else word for word in self.words]
        flags = re.IGNORECASE if self.fold else 0
        return text in words or any(re.fullmatch(pattern, text, flags) for pattern in self.patterns)


@dataclass(frozen=True)
class Place:
    """A match: where it is in the text, and how much of the text tells of it."""

    start: int
    end: int
    certain: int
    rule: int


def fold(text: str) -> str:
    """A whole text, folded."""
    return "".join(map(fold_character, text))


def places(rules: Sequence[Written], text: str) -> list[Place]:
    """Every match of every rule, of any length."""
    found = []
    for position, rule in enumerate(rules):
        pieces = [fold_character(character) if rule.fold else character for character in text]
        characters = "".join(pieces)
        origins = [origin for origin, piece in enumerate(pieces) for _ in piece]
        for start in range(len(characters)):
            for end in range(start + 1, min(start + LONGEST, len(characters)) + 1):
                if not rule.matches(characters[start:end]):
                    continue
                before, after = characters[:start][-1:], characters[end:][:1]
                if rule.whole_words and any(map(is_word_character, before + after)):
                    continue
                certain = origins[end - 1] + 1
                if rule.whole_words:
                    certain = (origins[end] if end < len(origins) else len(text)) + 1
                found.append(Place(origins[start], origins[end - 1] + 1, certain, position))
    return found


def filtered(rules: Sequence[Written], text: str) -> tuple[str, list[FilterMatch], bool]:
    """What comes out of a text, what is told of it, and whether a rule stopped it."""
    stops = [place for place in places(rules, text) if rules[place.rule].action is FilterAction.STOP]
    stop = min(stops, key=lambda place: (place.certain, place.start, place.rule), default=None)
    shown = len(text)
    if stop is not None:
        text, shown = text[: stop.certain], stop.start
    masked = [place for place in places(rules, text) if rules[place.rule].action is not FilterAction.STOP]
    # What folds to several characters may hold several matches, which are one in the original.
    masked = list({(place.start, place.end, place.rule): place for place in masked if place.start < shown}.values())
    masked.sort(key=lambda place: (place.start, place.rule, -place.end))
    characters = list(text)
    free = set(range(len(text)))
    told = []
    for place in masked:
        rule = rules[place.rule]
        if not any(other.start <= place.start and place.end <= other.end for other in masked if _before(other, place)):
            told.append(FilterMatch(rule.action, str(place.rule), place.start, place.end - place.start))
        if rule.action is FilterAction.MASK:
            for at in free & set(range(place.start, place.end)):
                characters[at] = rule.mask
            free -= set(range(place.start, place.end))
    if stop is not None:
        told.append(FilterMatch(FilterAction.STOP, str(stop.rule), stop.start, stop.end - stop.start))
    return "".join(characters[:shown]), told, stop is not None


def _before(other: Place, place: Place) -> bool:
    return other.rule == place.rule and (other.start, -other.end) < (place.start, -place.end)
