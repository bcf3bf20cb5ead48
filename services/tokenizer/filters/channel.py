"""One text of a choice on its way through all rules that apply: content, reasoning or the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.tokenizer.filters.filtered_text import FilteredText
from services.tokenizer.filters.rule import Rule
from services.tokenizer.filters.scanner import Scanner
from services.tokenizer.findings import FilterMatch


@dataclass(frozen=True, slots=True)
class ActiveRules:
    """The rules that apply to a request.

    Attributes:
        rules: all of the file, applying or not.
        guard: for those that mask or stop; None: there are none.
        watch: for those that only report; None: there are none.
    """

    rules: Sequence[Rule]
    guard: Scanner | None
    watch: Scanner | None


class Channel:
    """The state of one text. Rules that only report hold back nothing."""

    __slots__ = ("guard", "watch")

    def __init__(self, active: ActiveRules) -> None:
        self.guard = None if active.guard is None else FilteredText(active.guard, active.rules)
        self.watch = None if active.watch is None else FilteredText(active.watch, active.rules)

    @property
    def stopped(self) -> bool:
        """A rule ended it."""
        return self.guard is not None and self.guard.stopped

    def feed(self, text: str) -> str:
        """Take the next text. Returns: what may go out."""
        guard, watch = self.guard, self.watch
        out = text if guard is None else guard.feed(text)
        if watch is not None:
            if guard is not None and guard.stopped:
                # Reports are of what was there when the text ended.
                text = text[: max(0, guard.taken - watch.taken)]
            watch.feed(text)
        return out

    def flush(self) -> str:
        """The rest at the end of the text."""
        out = "" if self.guard is None else self.guard.flush()
        if self.watch is not None:
            self.watch.flush()
        return out

    def take_matches(self) -> list[FilterMatch]:
        """The matches that came since this was asked last."""
        taken: list[FilterMatch] = []
        for text in (self.guard, self.watch):
            if text is not None and text.matches:
                taken += text.matches
                text.matches = []
        return taken
