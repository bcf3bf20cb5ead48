"""What an explanation of a difference is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.differential.answers import Answer
from tests.e2e.differential.requests import Case


@dataclass(frozen=True)
class Explanation:
    """A difference that is meant: `covers` tells whether it is the whole difference of two answers."""

    reason: str
    covers: Callable[[Case, Answer, Answer, set[str]], bool]
