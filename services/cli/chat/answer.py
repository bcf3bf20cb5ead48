"""One answer: what has come of it, and how fast."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.cli.answer_stream import Piece

Report = Mapping[str, Any]


class Answer:
    """Takes the pieces of an answer as they come.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._asked = clock()
        self._first: float | None = None
        self._last = self._asked
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self.finish_reason: str | None = None
        self.session: Report | None = None
        self.context: Report | None = None
        self.filter_matches: Sequence[Report] = ()
        self.format_faults: Sequence[Report] = ()
        self.usage: Report | None = None
        self.error: str | None = None
        self.is_stopped = False

    def asked(self) -> None:
        """Count time from here: the request goes out."""
        self._asked = self._clock()

    def take(self, piece: Piece) -> None:
        """Add a piece."""
        if piece.text or piece.reasoning:
            self._last = self._clock()
            if self._first is None:
                self._first = self._last
        if piece.text:
            self._texts.append(piece.text)
        if piece.reasoning:
            self._thoughts.append(piece.reasoning)
        self.session = piece.session or self.session
        self.context = piece.context or self.context
        self.usage = piece.usage or self.usage
        if piece.finish_reason:
            self.finish_reason = piece.finish_reason
            # The last piece repeats those that came on the way; a service that does not leaves them as they are.
            self.filter_matches = piece.filter_matches or self.filter_matches
            self.format_faults = piece.format_faults or self.format_faults
        else:
            self.filter_matches = (*self.filter_matches, *piece.filter_matches)
            self.format_faults = (*self.format_faults, *piece.format_faults)

    @property
    def text(self) -> str:
        """What was answered so far, as it came."""
        return "".join(self._texts)

    @property
    def reasoning(self) -> str:
        """What the model thought so far."""
        return "".join(self._thoughts)

    @property
    def ttft(self) -> float | None:
        """Seconds from asking to the first text, once there is some."""
        return None if self._first is None else self._first - self._asked

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens a second after the first text; None where the service told no count, or all came at once."""
        tokens = (self.usage or {}).get("completion_tokens")
        if self._first is None or not isinstance(tokens, int) or tokens < 2 or self._last <= self._first:
            return None
        return (tokens - 1) / (self._last - self._first)

    def document(self, model: str) -> dict[str, Any]:
        """Return all of it as one JSON object, as `stream-omni chat --json` prints it."""
        session = self.session or {}
        ttft, rate = self.ttft, self.tokens_per_second
        return {
            "model": model,
            "session_id": session.get("id"),
            "answer_id": session.get("answer_id"),
            "content": self.text,
            "reasoning": self.reasoning or None,
            "finish_reason": self.finish_reason,
            "usage": self.usage,
            "stats": {
                "ttft_ms": None if ttft is None else round(ttft * 1000, 1),
                "tokens_per_second": None if rate is None else round(rate, 1),
            },
            "context": self.context,
            "filter_matches": list(self.filter_matches),
            "format_faults": list(self.format_faults),
            "error": self.error,
        }
