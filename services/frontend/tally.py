"""Counting what a generation has used, before its end too."""

from __future__ import annotations

from services.frontend.sink import Finished, FinishReason, Started, Usage, total


class Tally:
    """Counts of one generation.

    Args:
        choices: number of its choices.
    """

    def __init__(self, choices: int) -> None:
        self._choices = choices
        self._started: Started | None = None
        self._tokens = 0
        self._finished: list[Finished] = []

    @property
    def complete(self) -> bool:
        """Whether all choices have ended."""
        return len(self._finished) == self._choices

    @property
    def finish_reasons(self) -> tuple[FinishReason, ...]:
        """Reasons of the choices that have ended, in order of their end."""
        return tuple(finished.reason for finished in self._finished)

    @property
    def usage(self) -> Usage | None:
        """Token counts: final when complete, of the deltas so far before, None before the start."""
        if self.complete:
            return total([finished.usage for finished in self._finished])
        if self._started is None:
            return None
        return Usage(self._started.prompt_tokens, self._tokens, self._started.cached_tokens)

    def start(self, started: Started) -> None:
        """Count the prompt."""
        self._started = started

    def add(self, tokens: int) -> None:
        """Count a delta's tokens."""
        self._tokens += tokens

    def end(self, finished: Finished) -> None:
        """Count the end of a choice."""
        self._finished.append(finished)
