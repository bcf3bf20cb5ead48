"""What became of each request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from services.cli.bench.token_stream import Failure, TokenStream


class Ending(Enum):
    """How a request ended: `cancelled` as planned, `unfinished` because the run was over."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    UNFINISHED = "unfinished"
    FAILED = "failed"


@dataclass(slots=True)
class Outcome:
    """One request that was sent.

    Args:
        sent_at: when, by the clock of the stream's times.
        stream: what came.
        ending: None while it runs.
        failure: why it failed.
    """

    sent_at: float
    stream: TokenStream
    ending: Ending | None = None
    failure: Failure | None = None

    @property
    def ttft_s(self) -> float | None:
        """Time to the first token: from sending, connecting included, to the first chunk that brings one."""
        firsts = [times[0] for times in self.stream.by_choice.values() if times]
        return min(firsts) - self.sent_at if firsts else None

    @property
    def e2e_s(self) -> float | None:
        """Time from sending to `[DONE]`."""
        return None if self.stream.done_at is None else self.stream.done_at - self.sent_at

    @property
    def tokens(self) -> int:
        """Number of tokens: the server's count, else the chunks that came."""
        usage = self.stream.usage
        return self.stream.chunks if usage is None else usage.completion_tokens

    @property
    def gaps_s(self) -> list[float]:
        """Times from one chunk of a choice to its next; 0 for two that came in one piece."""
        return [later - earlier for times in self.stream.by_choice.values() for earlier, later in pairwise(times)]

    @property
    def gap_per_token_s(self) -> float | None:
        """Mean time of a token after the first, whatever the number of tokens in a chunk (TPOT).

        From the first chunk to the last, over the choice's tokens but one; those of several choices are taken to be
        equally many. None without two chunks in some choice, or without the server's count of its tokens.
        """
        streams = [times for times in self.stream.by_choice.values() if len(times) > 1]
        if self.stream.usage is None or not streams:
            return None
        tokens = self.tokens / len(self.stream.by_choice)
        mean_span = sum(times[-1] - times[0] for times in streams) / len(streams)
        return mean_span / (tokens - 1) if tokens > 1 else None


class Recorder:
    """Keeps the outcomes of a run, those that are over and those that run."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.lags_s: list[float] = []
        """How late each request of a schedule was sent."""
        self._running: dict[int, Outcome] = {}
        self._chunks = 0
        self._failed = 0

    def begin(self, outcome: Outcome) -> None:
        """A request is being sent."""
        self._running[id(outcome)] = outcome

    def end(self, outcome: Outcome, ending: Ending, failure: Failure | None = None) -> None:
        """A request is over."""
        del self._running[id(outcome)]
        outcome.ending, outcome.failure = ending, failure
        self._chunks += outcome.stream.chunks
        self._failed += ending is Ending.FAILED
        self.outcomes.append(outcome)

    @property
    def running(self) -> int:
        """Number of requests under way."""
        return len(self._running)

    @property
    def failed(self) -> int:
        """Number of requests that failed."""
        return self._failed

    @property
    def chunks(self) -> int:
        """Number of chunks with tokens so far."""
        return self._chunks + sum(outcome.stream.chunks for outcome in self._running.values())

    def ended(self, *endings: Ending) -> Sequence[Outcome]:
        """Return those that ended so."""
        return [outcome for outcome in self.outcomes if outcome.ending in endings]
