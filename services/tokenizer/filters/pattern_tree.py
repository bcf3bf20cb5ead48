"""Patterns as trees: their width, and their text for the regex engine, whole and of what they begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Node(Protocol):
    """A part of a pattern.

    Attributes:
        least, most: characters of its shortest and of its longest match.
    """

    @property
    def least(self) -> int:
        """See above."""

    @property
    def most(self) -> int:
        """See above."""

    def whole(self) -> str:
        """RE2's text of it."""

    def beginning(self) -> str | None:
        """RE2's text for what is a match once something follows, from the empty text on; None: there is no such."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set; `members` is what stands between the brackets of RE2's text."""

    members: str

    @property
    def least(self) -> int:
        """One."""
        return 1

    @property
    def most(self) -> int:
        """One."""
        return 1

    def whole(self) -> str:
        """See `Node`."""
        return f"[{self.members}]"

    def beginning(self) -> str:
        """See `Node`."""
        return ""


@dataclass(frozen=True, slots=True)
class InOrder:
    """One part after the other; without parts, the empty text."""

    parts: Sequence[Node]

    @property
    def least(self) -> int:
        """Sum."""
        return sum(part.least for part in self.parts)

    @property
    def most(self) -> int:
        """Sum."""
        return sum(part.most for part in self.parts)

    def whole(self) -> str:
        """See `Node`."""
        return "".join(part.whole() for part in self.parts)

    def beginning(self) -> str | None:
        """See `Node`."""
        begun: str | None = None
        for part in reversed(self.parts):
            own = part.beginning()
            after = None if begun is None else part.whole() + begun
            begun = _either([text for text in (own, after) if text is not None])
        return begun


@dataclass(frozen=True, slots=True)
class OneOf:
    """Any one of several parts."""

    parts: Sequence[Node]

    @property
    def least(self) -> int:
        """Of the shortest."""
        return min(part.least for part in self.parts)

    @property
    def most(self) -> int:
        """Of the longest."""
        return max(part.most for part in self.parts)

    def whole(self) -> str:
        """See `Node`."""
        return f"(?:{'|'.join(part.whole() for part in self.parts)})"

    def beginning(self) -> str | None:
        """See `Node`."""
        return _either([text for part in self.parts if (text := part.beginning()) is not None])


@dataclass(frozen=True, slots=True)
class Repeated:
    """A part, `fewest` to `times` times over."""

    part: Node
    fewest: int
    times: int

    @property
    def least(self) -> int:
        """Product."""
        return self.part.least * self.fewest

    @property
    def most(self) -> int:
        """Product."""
        return self.part.most * self.times

    def whole(self) -> str:
        """See `Node`."""
        return f"(?:{self.part.whole()}){{{self.fewest},{self.times}}}"

    def beginning(self) -> str | None:
        """See `Node`."""
        own = self.part.beginning()
        if own is None or self.times == 0:
            return None
        return f"(?:{self.part.whole()}){{0,{self.times - 1}}}{own}"


def _either(texts: list[str]) -> str | None:
    return f"(?:{'|'.join(texts)})" if texts else None
