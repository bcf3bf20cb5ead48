"""Tokens whose text a filter has not let out yet: their ids and log probabilities tell the text as well."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from services.tokenizer.logprobs import Logprobs

# Characters of the text before the tokens and up to their end, their ids and log probabilities.
Run = tuple[int, int, list[int], Logprobs | None]


class WaitingTokens:
    """The tokens of one content, in order, a delta's at a time.

    Those of a delta go out once all their text is out, and never where some of it was masked.

    Args:
        withheld: told of each number of tokens that never go out.
    """

    __slots__ = ("_withheld", "runs")

    def __init__(self, withheld: Callable[[int], None]) -> None:
        self._withheld = withheld
        self.runs: deque[Run] = deque()
        """Those that wait, a delta's each, in order."""

    def release(self, out: int, masked: list[tuple[int, int]]) -> tuple[list[int], Logprobs | None]:
        """Give the tokens of the first `out` characters.

        Args:
            masked: starts and ends of what was masked; those that no later token is of are taken out.
        """
        runs = self.runs
        token_ids: list[int] = []
        logprobs: Logprobs | None = None
        while runs and runs[0][1] <= out:
            begin, end, ids, own = runs.popleft()
            if any(start < end and begin < stop for start, stop in masked):
                self._withheld(len(ids))
                continue
            token_ids = token_ids + ids if token_ids else ids
            if logprobs is None:
                logprobs = own
            elif own is not None:
                logprobs.extend(own)
        if masked:
            first = runs[0][0] if runs else out
            masked[:] = [place for place in masked if place[1] > first]
        return token_ids, logprobs

    def drop(self) -> None:
        """Withhold the rest."""
        for _, _, token_ids, _ in self.runs:
            self._withheld(len(token_ids))
        self.runs.clear()
