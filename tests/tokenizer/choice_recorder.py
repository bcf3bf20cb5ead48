"""A choice's reader that keeps all it gets, and the running of a choice from frames to its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from services.chassis.errors import ServiceError
from services.tokenizer.choice import Choice
from services.tokenizer.events import Finish, FinishReason, Parsed, Usage
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_tokenizer import TextTokenizer

# Of the engine's own counts a choice takes none: a stop string may end it earlier.
_ENGINE_USAGE = Usage(0, 0, 0)
END = 2


@dataclass
class Recorder:
    """A reader that keeps all it gets, in order."""

    starts: list[tuple[int, int]] = field(default_factory=list)
    deltas: list[tuple[list[int], str]] = field(default_factory=list)
    finishes: list[Finish] = field(default_factory=list)
    errors: list[ServiceError] = field(default_factory=list)
    cancelled: int = 0
    logprobs: list[Logprobs | None] = field(default_factory=list)
    parsed: list[Parsed | None] = field(default_factory=list)

    def choice_started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None) -> None:
        """Keep the start."""
        self.starts.append((prompt_tokens, cached_tokens))

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Keep a copy, so that a list that is changed later shows."""
        assert index == 1 and not self.finishes
        self.parsed.append(parsed)
        self.logprobs.append(None if logprobs is None else logprobs.head(len(logprobs.logprobs)))
        self.deltas.append((list(token_ids), text))

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Keep the end."""
        assert index == 1
        self.finishes.append(finish)

    def choice_failed(self, error: ServiceError) -> None:
        """Keep the failure."""
        self.errors.append(error)

    def cancel(self) -> None:
        """Count the cancellations of the engine's stream."""
        self.cancelled += 1

    @property
    def text(self) -> str:
        """All text."""
        return "".join(text for _, text in self.deltas)

    @property
    def token_ids(self) -> list[int]:
        """All ids."""
        return [token_id for token_ids, _ in self.deltas for token_id in token_ids]

    @property
    def finish(self) -> Finish:
        """The one end."""
        (finish,) = self.finishes
        return finish


def run(
    tokenizer: TextTokenizer,
    frames: list[list[int]],
    *,
    stops: list[str] | None = None,
    include_stop: bool = False,
    skip_special_tokens: bool = True,
    reason: FinishReason = FinishReason.LENGTH,
    stop_token_id: int | None = None,
    logprobs_of: Callable[[list[int]], Logprobs] | None = None,
    min_tokens: int = 0,
) -> Recorder:
    """Give a choice these frames and the end, as the engine's link would: nothing follows its cancellation.

    With `logprobs_of` each frame comes with those of its ids.
    """
    recorder = Recorder()
    matcher = StopStrings(stops).matcher(include_stop, min_tokens) if stops else None
    choice = Choice(1, recorder, tokenizer.decoder([500], skip_special_tokens), matcher, include_stop)
    choice.cancel_stream = recorder.cancel
    choice.started(9, 4)
    for position, frame in enumerate(frames):
        ends_with_stop = reason is FinishReason.STOP and position == len(frames) - 1
        choice.delta(frame, ends_with_stop, logprobs_of(frame) if logprobs_of is not None else None)
        if recorder.cancelled:
            return recorder
    choice.finished(Finish(reason, stop_token_id, _ENGINE_USAGE))
    assert choice.ended
    return recorder


def first_stop(stops: list[str], text: str) -> tuple[str, int] | None:
    """A plain reference: the stop with the earliest end, the longest of those, and that end."""
    for end in range(1, len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if text[:end].endswith(stop):
                return stop, end
    return None
