"""Looks for the matches of several rules in a piece of a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from services.tokenizer.filters.finder import Finder, Occurrence
from services.tokenizer.filters.folding import Folded, Folder, is_word_character
from services.tokenizer.filters.pattern_finder import PatternFinder, RulePattern
from services.tokenizer.filters.rule import Rule
from services.tokenizer.filters.word_finder import WordFinder
from services.tokenizer.findings import FilterAction

# States and moves that are remembered; they take some 10 MB.
_REMEMBERED = 100_000
# Characters of a piece whose move is remembered. Tokens are shorter; what is longer will hardly come again.
_MOVE_CHARACTERS = 32


class WordBefore(NamedTuple):
    """Whether the character before a text is part of a word, in the text as it is and in the folded one."""

    plain: bool = False
    folded: bool = False


_NO_WORD = WordBefore()


class Scan(NamedTuple):
    """What a scan tells.

    Attributes:
        found: matches, in no order.
        open_start: first position at which a match may begin that is not known for sure.
        word_before: of the text from there on.
    """

    found: list[Occurrence]
    open_start: int
    word_before: WordBefore


class State:
    """A text so far, as far as it matters: what is held back, and what was before.

    Attributes:
        length: characters held back.
        moves: the state after a piece of text, for pieces with which no match came.
        breaks: for characters with which nothing of what is held can go on: the state in which they are the first.
    """

    __slots__ = ("breaks", "held", "length", "moves", "word_before")

    def __init__(self, held: str, word_before: WordBefore) -> None:
        self.held = held
        self.length = len(held)
        self.word_before = word_before
        self.moves: dict[str, State] = {}
        self.breaks: dict[str, State | None] = {}


@dataclass(frozen=True, slots=True)
class Finders:
    """What finds the matches of rules that are used together: in a text as it is, and in the folded one."""

    plain: Sequence[Finder]
    folded: Sequence[Finder]
    whole: bool


def finders(rules: Mapping[int, Rule]) -> Finders:
    """Compile rules, given by their position.

    Raises:
        PatternError: a pattern is too large.
    """
    whole = any(rule.whole_words for rule in rules.values())
    return Finders(_finders(rules, False), _finders(rules, True), whole)


def _finders(rules: Mapping[int, Rule], fold: bool) -> list[Finder]:
    made: list[Finder] = []
    for whole in (False, True):
        chosen = {position: rule for position, rule in rules.items() if rule.fold is fold and rule.whole_words is whole}
        words = [(word, position) for position, rule in chosen.items() for word in rule.words]
        patterns = [
            RulePattern(tree, position, rule.action is FilterAction.STOP)
            for position, rule in chosen.items()
            for tree in rule.patterns
        ]
        if words:
            made.append(WordFinder(words, whole))
        if patterns:
            made.append(PatternFinder(patterns, whole))
    return made


class Scanner:
    """Scans with several sets of finders; remembers how texts go on, so that most pieces cost a look-up."""

    def __init__(self, parts: Iterable[Finders], folder: Folder) -> None:
        self._plain: list[Finder] = []
        self._folded: list[Finder] = []
        self._whole = False
        for part in parts:
            self._plain += part.plain
            self._folded += part.folded
            self._whole |= part.whole
        self._folder = folder
        self._states: dict[tuple[str, WordBefore], State] = {}
        self._remembered = 0

    def state(self, held: str = "", word_before: WordBefore = _NO_WORD) -> State:
        """The state with this text held back."""
        key = (held, word_before)
        state = self._states.get(key)
        if state is None:
            self._count()
            state = self._states[key] = State(held, word_before)
        return state

    def following(self, state: State, piece: str) -> State | None:
        """The state after a piece with which no match comes; None: there may be one, or the piece is long."""
        if not 0 < len(piece) <= _MOVE_CHARACTERS:
            return None
        # Most pieces begin with what ends a word, and how they go on from there is known from other states.
        first = None
        if state.held:
            character = piece[0]
            breaks = state.breaks
            first = breaks[character] if character in breaks else self._break(state, character)
        following = None if first is None else first.moves.get(piece)
        if following is None:
            start = state if first is None else first
            found, open_start, word_before = self.scan(start.held + piece, start.word_before, False)
            if found:
                return None
            following = self.state((start.held + piece)[open_start:], word_before)
            if first is not None:
                self.remember(first, piece, following)
        self.remember(state, piece, following)
        return following

    def remember(self, state: State, piece: str, following: State) -> None:
        """Keep a move with which no match came."""
        self._count()
        state.moves[piece] = following

    def _count(self) -> None:
        self._remembered += 1
        if self._remembered > _REMEMBERED:
            # Texts under way keep their states, which lead nowhere then.
            for state in self._states.values():
                state.moves.clear()
                state.breaks.clear()
            self._states.clear()
            self._remembered = 1

    def _break(self, state: State, character: str) -> State | None:
        scan = self.scan(state.held + character, state.word_before, False)
        first = None
        if not scan.found and scan.open_start >= state.length:
            first = self.state("", self._before(state.held, None, state.length, state.word_before))
        self._count()
        state.breaks[character] = first
        return first

    def scan(self, text: str, word_before: WordBefore, final: bool) -> Scan:
        """Scan a text, whose begin is no part of an earlier match; `final`: nothing follows it."""
        found: list[Occurrence] = []
        open_start = len(text)
        for finder in self._plain:
            open_start = min(open_start, finder.find(text, word_before.plain, final, found))
        folded = self._folder.fold(text) if self._folded else None
        if folded is not None and folded.origins is None:
            for finder in self._folded:
                open_start = min(open_start, finder.find(folded.text, word_before.folded, final, found))
        elif folded is not None:
            in_folded: list[Occurrence] = []
            for finder in self._folded:
                position = finder.find(folded.text, word_before.folded, final, in_folded)
                open_start = min(open_start, folded.start(position, len(text)))
            found += [_in_original(occurrence, folded, len(text)) for occurrence in in_folded]
        if open_start == 0 or not self._whole:
            return Scan(found, open_start, word_before)
        return Scan(found, open_start, self._before(text, folded, open_start, word_before))

    def _before(self, text: str, folded: Folded | None, position: int, given: WordBefore) -> WordBefore:
        if not self._whole:
            return given
        plain = is_word_character(text[position - 1])
        if not self._folded:
            return WordBefore(plain, False)
        folded = folded or self._folder.fold(text)
        shown = folded.text[:position]
        if folded.origins is not None:
            shown = "".join(
                character for character, origin in zip(folded.text, folded.origins, strict=True) if origin < position
            )
        return WordBefore(plain, is_word_character(shown[-1]) if shown else given.folded)


def _in_original(occurrence: Occurrence, folded: Folded, length: int) -> Occurrence:
    start, end, certain, rule = occurrence
    # What comes after the match decides with its own first character, which the end of a text is too.
    known = folded.end(end) if certain == end else folded.start(end, length) + 1
    return Occurrence(folded.start(start, length), folded.end(end), known, rule)
