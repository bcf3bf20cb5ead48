"""What became of each request."""

from __future__ import annotations

import pytest

from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.token_stream import Failure
from tests.cli.bench.outcomes import outcome, record


def test_times_are_counted_from_sending() -> None:
    """TTFT ends with the first chunk that brings a token, end to end with [DONE]."""
    ended = outcome(10.5, 11.0, 12.0, tokens=3, sent_at=10.0, done_at=13.0)
    assert (ended.ttft_s, ended.e2e_s) == (0.5, 3.0)
    assert ended.gaps_s == [0.5, 1.0]


def test_gap_per_token_spreads_chunks_over_tokens() -> None:
    """Nine tokens in three chunks over 4 s have half a second each after the first."""
    assert outcome(1.0, 2.0, 5.0, tokens=9).gap_per_token_s == 0.5


def test_gaps_of_several_choices_are_each_ones_own() -> None:
    """Two choices whose chunks come together have gaps of a second, not of zero; usage counts the tokens of both."""
    ended = outcome(1.0, 2.0, 3.0, tokens=6, choices=2)
    assert ended.gaps_s == [1.0, 1.0, 1.0, 1.0]
    assert ended.gap_per_token_s == 1.0


@pytest.mark.parametrize(("times", "tokens"), [((), None), ((1.0,), 1), ((1.0, 2.0), None), ((1.0, 2.0), 1)])
def test_gap_per_token_needs_two_tokens_and_usage(times: tuple[float, ...], tokens: int | None) -> None:
    """Where it cannot be told it is None."""
    assert outcome(*times, tokens=tokens).gap_per_token_s is None


def test_tokens_are_the_servers_count_else_chunks() -> None:
    """Usage decides; without it a chunk is a token."""
    assert outcome(1.0, 2.0, tokens=7).tokens == 7
    assert outcome(1.0, 2.0).tokens == 2


def test_request_without_tokens_has_no_times() -> None:
    """What never came has no time."""
    ended = outcome()
    assert (ended.ttft_s, ended.e2e_s, ended.gaps_s) == (None, None, [])


def test_recorder_tells_how_far_the_run_is() -> None:
    """Running, failed and chunks are counted as they come, those of running requests included."""
    recorder = Recorder()
    running = outcome(1.0, 2.0)
    recorder.begin(running)
    record(recorder, outcome(1.0), Ending.COMPLETED)
    record(recorder, outcome(), Ending.FAILED, Failure("timeout", ""))
    assert (recorder.running, recorder.failed, recorder.chunks, len(recorder.outcomes)) == (1, 1, 3, 2)
    recorder.end(running, Ending.UNFINISHED)
    assert (recorder.running, recorder.chunks) == (0, 3)
    assert recorder.ended(Ending.UNFINISHED) == [running]
