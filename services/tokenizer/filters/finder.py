"""What finds matches of rules in a piece of text."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Occurrence(NamedTuple):
    """A place where a rule matches.

    Attributes:
        start, end: of the match in the text.
        certain: how much of the text it takes to know of it: its end, or one more where the character after it counts.
            A text's end counts as a character.
        rule: position of the rule in its file.
    """

    start: int
    end: int
    certain: int
    rule: int


class Finder(Protocol):
    """Finds the matches of some rules. Immutable.

    A rule matches at each place where one of its words stands or one of its patterns matches, whatever else matches
    there. Of several matches with one start the longest counts. Of a stopping rule the match that is complete first
    counts alone, and of those the longest.
    """

    def find(self, text: str, word_before: bool, final: bool, found: list[Occurrence]) -> int:
        """Add the matches in a text to `found`.

        Args:
            text: nothing before it belongs to a match.
            word_before: the character before it is part of a word.
            final: nothing follows it.

        Returns: the position of the first match that more text may complete or make longer, else the text's length.
        """
