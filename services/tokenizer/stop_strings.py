"""Stop strings: end a text where one of them is completed, and leak nothing of it.

The matcher is Aho and Corasick's automaton (1975): one step a character, whatever the stops.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from services.chassis.errors import InvalidRequest

# OpenAI's interface takes up to four.
MAX_STOPS = 4
MAX_STOP_LENGTH = 1024
"""Characters in one stop string. Bounds the text that a matcher may hold back."""

# Matches nothing.
_NOWHERE = r"(?!)"


class StopMatch(NamedTuple):
    """A completed stop string.

    Attributes:
        stop: the stop string.
        end: how many characters of the text fed last it took to complete it, at least 1. The token that brought the
            end-th character is the one that completed it; what follows in that text is dropped.
    """

    stop: str
    end: int


class StopResult(NamedTuple):
    """What one feed gives: text to pass on, and the match that ends the text, if there is one."""

    text: str
    match: StopMatch | None = None


class StopStrings:
    """A set of stop strings, compiled; immutable, so that generations may share it.

    The stop that is completed first wins. Of several that end at the same character the longest wins, so that the least
    of a stop is shown.

    Args:
        stops: up to `MAX_STOPS` strings of 1 to `MAX_STOP_LENGTH` characters.

    Raises:
        InvalidRequest: too many stops, or one that is empty, too long or holds an unpaired surrogate.
    """

    __slots__ = ("completed", "depths", "find_first", "steps")

    def __init__(self, stops: Iterable[str]) -> None:
        checked = _checked(list(stops))
        # One entry a state; state 0 is the root, where no stop has begun.
        self.steps: list[dict[str, int]] = [{}]
        self.depths: list[int] = [0]
        self.completed: list[str | None] = [None]
        for stop in checked:
            self._add(stop)
        self._link_shorter_suffixes()
        self.find_first = re.compile(f"[{re.escape(''.join(self.steps[0]))}]" if checked else _NOWHERE).search

    def matcher(self, include_stop_str_in_output: bool = False, min_tokens: int = 0) -> StopMatcher:
        """A matcher for one generation. With `include_stop_str_in_output` the text ends with the stop, else before.

        A stop that is completed by one of the first `min_tokens` tokens does not count, as in vLLM; one that only
        begins there does.
        """
        return StopMatcher(self, include_stop_str_in_output, min_tokens)

    def _add(self, stop: str) -> None:
        state = 0
        for character in stop:
            following = self.steps[state].get(character)
            if following is None:
                following = len(self.steps)
                self.steps[state][character] = following
                self.steps.append({})
                self.depths.append(self.depths[state] + 1)
                self.completed.append(None)
            state = following
        self.completed[state] = stop

    def _link_shorter_suffixes(self) -> None:
        """Give each state the steps of its longest proper suffix too, so that matching never goes back."""
        waiting = deque((state, 0) for state in self.steps[0].values())
        while waiting:
            state, suffix = waiting.popleft()
            self.completed[state] = self.completed[state] or self.completed[suffix]
            for character, following in self.steps[state].items():
                waiting.append((following, self.steps[suffix].get(character, 0)))
            self.steps[state] = {**self.steps[suffix], **self.steps[state]}


class StopMatcher:
    """Watches one generation's text. Holds back only the longest suffix that may still become a stop."""

    __slots__ = ("_counts", "_dropped", "_find_first", "_held", "_include", "_state", "_stops", "_tokens_left")

    def __init__(self, stops: StopStrings, include_stop_str_in_output: bool, min_tokens: int) -> None:
        self._stops = stops
        self._find_first = stops.find_first
        self._include = include_stop_str_in_output
        self._tokens_left = min_tokens
        self._counts = True
        self._state = 0
        self._held = ""
        self._dropped = 0

    def begin_token(self) -> None:
        """Say that what is fed from here on is of the next token."""
        self._counts = self._tokens_left <= 0
        self._tokens_left -= 1

    def passes(self, text: str) -> bool:
        """Take the text of one token if no stop has begun before it or begins in it, as with most tokens.

        Returns: False where that is not so; nothing was taken, and the token goes through `begin_token` and `feed`.
        """
        if self._state or self._find_first(text) is not None:
            return False
        self.begin_token()
        return True

    def feed(self, text: str) -> StopResult:
        """Take the next text; after a match nothing more may be fed."""
        if self._state == 0 and self._find_first(text) is None:
            return StopResult(text)
        steps, completed = self._stops.steps, self._stops.completed
        state = self._state
        for position, character in enumerate(text):
            state = steps[state].get(character, 0)
            stop = completed[state]
            if stop is not None and self._counts:
                return self._matched(stop, text, position + 1)
        seen = self._held + text
        certain = len(seen) - self._stops.depths[state]
        self._state, self._held = state, seen[certain:]
        return StopResult(seen[:certain])

    @property
    def held_characters(self) -> int:
        """Characters that came and were not passed on: those held back, and those that a match dropped."""
        return len(self._held) + self._dropped

    def flush(self) -> str:
        """The text held back, at the end of the stream. It completed no stop, so it is the generation's own."""
        held, self._held, self._state = self._held, "", 0
        return held

    def _matched(self, stop: str, text: str, end: int) -> StopResult:
        seen = self._held + text[:end]
        self._state, self._held = 0, ""
        shown = len(seen) if self._include else len(seen) - len(stop)
        self._dropped = len(seen) + len(text) - end - shown
        return StopResult(seen[:shown], StopMatch(stop, end))


def _checked(stops: list[str]) -> list[str]:
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(f"{len(stops)} stop strings; at most {MAX_STOPS} are allowed", param="stop")
    for stop in stops:
        if not 1 <= len(stop) <= MAX_STOP_LENGTH:
            raise InvalidRequest(
                f"a stop string has {len(stop)} characters; 1 to {MAX_STOP_LENGTH} are allowed", param="stop"
            )
        if not stop.isascii():
            try:
                stop.encode()
            except UnicodeEncodeError as error:
                raise InvalidRequest(
                    "a stop string holds an unpaired surrogate; send valid Unicode", param="stop"
                ) from error
    return stops
