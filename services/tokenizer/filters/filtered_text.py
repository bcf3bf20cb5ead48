"""One text on its way through a filter: held back where a match may have begun, masked where one is."""

from __future__ import annotations

from collections.abc import Sequence

from services.tokenizer.filters.finder import Occurrence
from services.tokenizer.filters.rule import Rule
from services.tokenizer.filters.scanner import Scanner, State
from services.tokenizer.findings import FilterAction, FilterMatch

# Longer texts are taken in pieces, which bounds what one search looks at.
_PIECE = 512


class FilteredText:
    """The state of one text. What comes out does not depend on how the text was split.

    Each character that belongs to a match of a masking rule becomes that rule's mask; where several matches overlap,
    the one that begins first gives it, then the rule that is first in the file. The first match of a stopping rule that
    is complete ends the text: what is before it is shown, as though the text ended with the match. A match that lies in
    an earlier one of the same rule is masked but not told.

    Args:
        scanner: for the rules.
        rules: all rules of the file.
    """

    __slots__ = (
        "_covered",
        "_ends",
        "_own_state",
        "_rules",
        "_scanner",
        "masked",
        "matches",
        "out",
        "state",
        "stopped",
    )

    def __init__(self, scanner: Scanner, rules: Sequence[Rule]) -> None:
        self._scanner = scanner
        self._rules = rules
        # Masks of the first characters held: they belong to a match that is known.
        self._covered = ""
        # Of each rule, the end of its match that reaches farthest.
        self._ends: dict[int, int] = {}
        self.state = scanner.state()
        """What is held back. While something is masked it is one of its own, without moves."""
        self._own_state = False
        self.out = 0
        """Characters given out."""
        self.stopped = False
        """A stopping rule matched: nothing more comes out."""
        self.masked: list[tuple[int, int]] = []
        """Start and end of the matches that were masked, in order of their starts. Whoever reads them takes out those
        that he needs no more."""
        self.matches: list[FilterMatch] = []
        """Matches that came with the last piece; whoever reads them clears them."""

    @property
    def taken(self) -> int:
        """Characters taken in; a match that stops the text ends at the last of them."""
        return self.out + self.state.length

    def following(self, text: str) -> State | None:
        """The state after the next text, where it goes on without a match and none is being masked."""
        if self.masked or self._covered or self.stopped:
            return None
        if self._own_state:
            self._own_state = False
            self.state = self._scanner.state(self.state.held, self.state.word_before)
        return self._scanner.following(self.state, text)

    def feed(self, text: str) -> str:
        """Take the next text. Returns: what may go out now."""
        state = self.state
        following = state.moves.get(text) or self.following(text)
        if following is None:
            pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
            return "".join(["" if self.stopped else self._scan(piece, final=False) for piece in pieces])
        self.state = following
        seen = state.held + text
        certain = len(seen) - following.length
        self.out += certain
        return seen[:certain]

    def flush(self) -> str:
        """The rest at the end of the text."""
        return "" if self.stopped else self._scan("", final=True)

    def _scan(self, text: str, final: bool) -> str:
        state = self.state
        seen = state.held + text
        found, open_start, word_before = self._scanner.scan(seen, state.word_before, final)
        known: list[Occurrence] = []
        if found:
            stop = self._first_stop(found)
            if stop is not None:
                return self._stop(seen, stop)
            known = sorted((one for one in found if one.start < open_start), key=_order)
        shown = self._shown(seen, open_start, known)
        if self._covered or self.masked:
            self._own_state = True
            self.state = State(seen[open_start:], word_before)
            return shown
        self._own_state = False
        self.state = self._scanner.state(seen[open_start:], word_before)
        return shown

    def _first_stop(self, found: Sequence[Occurrence]) -> Occurrence | None:
        stops = [one for one in found if self._rules[one.rule].action is FilterAction.STOP]
        return min(stops, key=lambda one: (one.certain, one.start, one.rule), default=None)

    def _stop(self, seen: str, stop: Occurrence) -> str:
        self.stopped = True
        seen = seen[: stop.certain]
        found, _, _ = self._scanner.scan(seen, self.state.word_before, final=True)
        known = [one for one in found if one.start < stop.start]
        known = [one for one in known if self._rules[one.rule].action is not FilterAction.STOP]
        before = self.out
        shown = self._shown(seen, stop.start, sorted(known, key=_order))
        rule = self._rules[stop.rule]
        self.matches.append(FilterMatch(rule.action, rule.name, before + stop.start, stop.end - stop.start))
        self.state = State(seen[stop.start :], self.state.word_before)
        return shown

    def _shown(self, seen: str, end: int, known: Sequence[Occurrence]) -> str:
        """The text before `end`, with its matches masked and told."""
        if not known and not self._covered:
            self.out += end
            return seen[:end]
        masks = list(self._covered)
        for start, match_end, _, position in known:
            rule = self._rules[position]
            begin = self.out + start
            if self.out + match_end > self._ends.get(position, -1):
                self._ends[position] = self.out + match_end
                self.matches.append(FilterMatch(rule.action, rule.name, begin, match_end - start))
            if rule.action is FilterAction.MASK:
                self.masked.append((begin, self.out + match_end))
                masks += [""] * (start - len(masks))
                masks += [rule.mask] * (match_end - len(masks))
        self._covered = "".join(masks[end:])
        self.out += end
        return "".join(mask or seen[at] for at, mask in enumerate(masks[:end])) + seen[len(masks) : end]


def _order(occurrence: Occurrence) -> tuple[int, int, int]:
    """By start and rule; of one rule's matches at one start, the longest first."""
    return occurrence.start, occurrence.rule, -occurrence.end
