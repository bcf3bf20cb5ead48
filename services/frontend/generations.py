"""The generations of one request: one for each of its prompts. They begin and end together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from services.frontend.sink import Detail, Finished, Sink, Started, Usage
from services.frontend.text_client import TextClient
from services.frontend.text_link import Generation
from services.frontend.wire import WireRequest


class Generations:
    """Generations under way. `cancel` ends them all; those that have ended are left alone."""

    def __init__(self, generations: Sequence[Generation]) -> None:
        self._generations = generations

    def cancel(self) -> None:
        """End them."""
        for generation in self._generations:
            generation.cancel()


def start_all(
    texts: TextClient, requests: Sequence[WireRequest], sink: Sink, *, choices: int, prompt_only: bool
) -> Generations:
    """Start one generation for each prompt; `sink` sees them as one.

    Args:
        choices: number of choices a prompt. Those of prompt i are numbered from i * choices.
        prompt_only: nothing that is generated is told.

    Raises:
        Unavailable: one cannot be started; then none is.
    """
    started: list[Generation] = []
    try:
        for number, request in enumerate(requests):
            part: Sink = sink if number == 0 else _Part(sink, number * choices)
            started.append(texts.start(request, _PromptOnly(part) if prompt_only else part))
    except BaseException:
        Generations(started).cancel()
        raise
    return Generations(started)


class _Part:
    """Passes one prompt's events on, with its choices numbered within the whole."""

    def __init__(self, whole: Sink, first_choice: int) -> None:
        self._whole = whole
        self._first_choice = first_choice

    def started(self, started: Started) -> None:
        self._whole.started(replace(started, first_choice=self._first_choice))

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        return self._whole.delta(self._first_choice + index, token_ids, text, detail)

    def finished(self, finished: Finished) -> None:
        self._whole.finished(replace(finished, index=self._first_choice + finished.index))

    def failed(self, error: Exception) -> None:
        self._whole.failed(error)


class _PromptOnly:
    """Passes all on but what is generated: an engine generates at least one token, and the caller wants none."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def started(self, started: Started) -> None:
        self._sink.started(started)

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        return True

    def finished(self, finished: Finished) -> None:
        usage = Usage(finished.usage.prompt_tokens, 0, finished.usage.cached_tokens)
        self._sink.finished(replace(finished, reason="length", matched_stop=None, usage=usage))

    def failed(self, error: Exception) -> None:
        self._sink.failed(error)
