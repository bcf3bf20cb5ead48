"""Requests that were as fast as they had to be."""

from __future__ import annotations

import pytest

from services.cli.bench.goodput import goodput, is_good
from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.token_stream import Failure
from tests.cli.bench.outcomes import outcome, record


@pytest.mark.parametrize(
    ("targets", "good"),
    [
        ({"ttft_ms": 1000}, True),
        ({"ttft_ms": 999}, False),
        ({"itl_ms": 3000}, True),
        ({"itl_ms": 2900}, False),
        ({"tpot_ms": 500}, True),
        ({"tpot_ms": 499}, False),
        ({"e2e_ms": 6000}, True),
        ({"e2e_ms": 5999}, False),
        ({"ttft_ms": 1000, "e2e_ms": 5999}, False),
    ],
)
def test_all_targets_must_be_met(targets: dict[str, float], good: bool) -> None:
    """Each figure is held against its limit, the limit included; the gaps by their own 99th percentile."""
    assert is_good(outcome(1.0, 2.0, 5.0, tokens=9, done_at=6.0), targets) is good


def test_figure_that_a_request_has_not_is_met() -> None:
    """An answer of one token has no gap that could be too long."""
    assert is_good(outcome(1.0, tokens=1, done_at=1.0), {"itl_ms": 1, "tpot_ms": 1})


def test_failed_requests_are_not_good_and_cut_ones_not_counted() -> None:
    """The share is of the requests that ended by themselves: completed and failed ones."""
    recorder = Recorder()
    record(recorder, outcome(1.0, done_at=1.0), Ending.COMPLETED)
    record(recorder, outcome(9.0, done_at=9.0), Ending.COMPLETED)
    record(recorder, outcome(1.0), Ending.CANCELLED)
    record(recorder, outcome(1.0), Ending.UNFINISHED)
    record(recorder, outcome(), Ending.FAILED, Failure("timeout", ""))
    record(recorder, outcome(), Ending.FAILED, Failure("timeout", ""))
    found = goodput({"ttft_ms": 2000.0}, recorder, 10.0)
    assert found == {"targets": {"ttft_ms": 2000.0}, "good": 1, "share": 0.25, "requests_per_s": 0.1}


def test_share_of_nothing_is_not_told() -> None:
    """Without a request that ended there is no share."""
    assert goodput({"ttft_ms": 1.0}, Recorder(), 1.0)["share"] is None
