"""Choices with stages, from ids to what their reader gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from services.tokenizer.choice import Choice
from services.tokenizer.events import Finish, FinishReason, Usage
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.output_stage import NewStage, staged
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_tokenizer import TextTokenizer
from tests.tokenizer.choice_recorder import Recorder


def numbers_of(token_ids: Sequence[int]) -> Logprobs:
    """Log probabilities that tell which token they are of."""
    return Logprobs([-float(token_id) for token_id in token_ids], [1] * len(token_ids))


def run_staged(
    tokenizer: TextTokenizer,
    frames: Sequence[list[int]],
    new_stages: Sequence[NewStage],
    *,
    stops: list[str] | None = None,
    include_stop: bool = False,
    logprobs_of: Callable[[Sequence[int]], Logprobs] | None = None,
) -> Recorder:
    """Give a choice with stages these frames and the end, as the engine's link would."""
    recorder = Recorder()
    matcher = StopStrings(stops).matcher(include_stop) if stops else None
    stages = staged(1, recorder, new_stages)
    choice = Choice(1, stages[0], tokenizer.decoder([500], True), matcher, include_stop)
    choice.cancel_stream = recorder.cancel
    for stage in stages:
        stage.choice = choice
    choice.started(9, 4)
    for frame in frames:
        choice.delta(list(frame), False, logprobs_of(frame) if logprobs_of is not None else None)
        if recorder.cancelled:
            assert choice.ended
            return recorder
    choice.finished(Finish(FinishReason.LENGTH, None, Usage(0, 0, 0)))
    return recorder
