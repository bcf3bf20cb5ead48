"""One rule of a filter, as its file says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.tokenizer.filters.pattern_tree import Node
from services.tokenizer.findings import FilterAction


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a rule applies: to these models and these callers; None is all of them. A caller without a name is ""."""

    models: frozenset[str] | None = None
    callers: frozenset[str] | None = None

    def holds(self, model: str, caller: str) -> bool:
        """Whether it holds for a request."""
        return (self.models is None or model in self.models) and (self.callers is None or caller in self.callers)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule whose every part is valid.

    Attributes:
        name: for reports; unique.
        words: not empty; folded where `fold` is set.
        patterns: made for folded text where `fold` is set.
        mask: one character, for each that it replaces.
        whole_words: a match counts only where the characters before and after it are no part of a word.
        fold: differences of case, width and accents do not count.
    """

    name: str
    action: FilterAction
    words: Sequence[str] = ()
    patterns: Sequence[Node] = ()
    mask: str = "█"
    whole_words: bool = False
    fold: bool = True
    scope: Scope = Scope()
