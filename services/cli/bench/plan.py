"""What to send and when: the same for the same options and seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from services.cli.bench.options import Options
from services.cli.bench.prompts import Prompts
from services.cli.bench.trace import TraceEntry

_CHAT = "/v1/chat/completions"
_COMPLETIONS = "/v1/completions"


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """One request.

    Args:
        at_s: when to send it, in seconds from the start; None for as soon as there is room.
        body: what to send.
        cancel_after: close the connection once this many chunks with tokens have come; None to read to the end.
    """

    at_s: float | None
    body: bytes
    cancel_after: int | None


class Plan:
    """Makes the requests of a run, one after the other.

    Args:
        options: what is wanted.
        model: its name.
        trace: the entries of `options.trace`.
    """

    def __init__(self, options: Options, model: str, trace: Sequence[TraceEntry]) -> None:
        self._options = options
        self._model = model
        self._trace = trace
        # Each kind of chance has a source of its own, so that one option does not change what another draws.
        self._lengths = random.Random(f"lengths {options.seed}")
        self._cancels = random.Random(f"cancels {options.seed}")
        self._arrivals = random.Random(f"arrivals {options.seed}")
        self._prompts = Prompts(options, random.Random(f"prompts {options.seed}"))

    @property
    def path(self) -> str:
        """The endpoint's."""
        return _CHAT if self._options.endpoint == "chat" else _COMPLETIONS

    def warmup(self) -> Iterator[PlannedRequest]:
        """Yield the requests that are sent before; they are read to their ends."""
        for _ in range(self._options.warmup):
            body, _ = self._request(None, None)
            yield PlannedRequest(None, body, None)

    def requests(self) -> Iterator[PlannedRequest]:
        """Yield the requests that are measured, in the order of their times."""
        if self._trace:
            for entry in self._trace:
                yield self._planned(entry.at_s, entry.content, entry.max_tokens)
            return
        count = self._options.requests
        at_s: float | None = None if self._options.request_rate is None else 0.0
        for _ in itertools.count() if count is None else range(count):
            yield self._planned(at_s, None, None)
            if at_s is not None:
                at_s += self._pause()

    def _planned(self, at_s: float | None, content: Any, max_tokens: int | None) -> PlannedRequest:
        body, most = self._request(content, max_tokens)
        chance, after = self._cancels.random(), self._cancels.randint(1, max(1, most - 1))
        return PlannedRequest(at_s, body, after if chance < self._options.cancel_share else None)

    def _pause(self) -> float:
        """Return the time to the next arrival: its mean is 1 / rate whatever the burstiness."""
        shape, rate = self._options.burstiness, self._options.request_rate
        assert rate is not None
        return self._arrivals.gammavariate(shape, 1 / (rate * shape))

    def _request(self, content: Any, max_tokens: int | None) -> tuple[bytes, int]:
        wanted = self._options.output_tokens
        drawn = self._lengths.randint(wanted.least, wanted.most)
        if max_tokens is None:
            max_tokens = drawn
        if content is None or isinstance(content, int):
            content = self._prompts.next(content)
        fields: dict[str, Any] = {"model": self._model}
        if self._options.endpoint == "completions":
            fields["prompt"] = content
        else:
            is_text = isinstance(content, str)
            fields["messages"] = [{"role": "user", "content": content}] if is_text else content
        fields |= {"max_tokens": max_tokens, "stream": True, "stream_options": {"include_usage": True}}
        return orjson.dumps(fields | dict(self._options.extra_body)), max_tokens
