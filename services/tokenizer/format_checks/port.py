"""What checks a text's form while it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Fault:
    """A place where a text breaks its form.

    Attributes:
        position: characters of the text before it.
        message: what is wrong, on one line.
        shown_at: characters of the text before the one that showed it; the text up to there shows no such fault. Not
            before `position`: what is open is found to stay so only at the end of what it should have closed in.
    """

    position: int
    message: str
    shown_at: int


class FormatChecker(Protocol):
    """Checks one text. What it finds does not depend on how the text is split."""

    def feed(self, text: str) -> Sequence[Fault]:
        """Take the next characters; return the faults that they show."""

    def finish(self) -> Sequence[Fault]:
        """The text is over; return the faults that this shows. Called once, last."""
