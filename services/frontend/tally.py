"""Counting what a generation has used, before its end too."""

from __future__ import annotations

from services.frontend.sink import Finished, FinishReason, Started, Usage, total


class Tally:
    """Counts of one answer.

    Args:
        choices: number of choices of all prompts.
        prompts: number of prompts.
    """

    __slots__ = ("_choices", "_finished", "_prompts", "_started", "_tokens")

    def __init__(self, choices: int, prompts: int = 1) -> None:
        self._choices = choices
        self._prompts = prompts
        self._started: list[Started] = []
        self._tokens = 0
        self._finished: list[Finished] = []

    @property
    def begun(self) -> bool:
        """Whether a prompt has started."""
        return bool(self._started)

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
            return self._final()
        if not self._started:
            return None
        return Usage(
            sum(started.prompt_tokens for started in self._started),
            self._tokens,
            sum(started.cached_tokens for started in self._started),
        )

    def start(self, started: Started) -> None:
        """Count the prompt."""
        self._started.append(started)

    def add(self, tokens: int) -> None:
        """Count a delta's tokens."""
        self._tokens += tokens

    def end(self, finished: Finished) -> None:
        """Count the end of a choice."""
        self._finished.append(finished)

    def _final(self) -> Usage:
        per_prompt = self._choices // self._prompts
        usages: list[list[Usage]] = [[] for _ in range(self._prompts)]
        for finished in self._finished:
            usages[finished.index // per_prompt].append(finished.usage)
        totals = [total(of_prompt) for of_prompt in usages]
        return Usage(
            prompt_tokens=sum(usage.prompt_tokens for usage in totals),
            completion_tokens=sum(usage.completion_tokens for usage in totals),
            cached_tokens=sum(usage.cached_tokens for usage in totals),
            reasoning_tokens=sum(usage.reasoning_tokens for usage in totals),
        )
