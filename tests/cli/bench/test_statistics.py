"""Percentiles and summaries."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli.bench.statistics import percentile, summary_ms

VALUES = st.lists(st.floats(0, 1e6), min_size=2, max_size=60)


@given(VALUES, st.integers(1, 99))
def test_percentile_is_that_of_the_standard_library(values: list[float], percent: int) -> None:
    """It is the linear one, as the standard library's inclusive quantiles."""
    expected = statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
    assert percentile(sorted(values), percent) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_percentile_of_one_value_is_the_value() -> None:
    """With one value every percentile is that."""
    assert [percentile([4.0], percent) for percent in (0, 50, 99, 100)] == [4.0] * 4


def test_summary_is_in_milliseconds() -> None:
    """Seconds go in in any order, None among them, and milliseconds come out."""
    found = summary_ms([0.004, None, 0.001, 0.003, 0.002])
    assert found == {"count": 4, "mean": 2.5, "p50": 2.5, "p95": 3.85, "p99": 3.97, "max": 4.0}


@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_has_no_summary(values: list[float | None]) -> None:
    """What was never measured is told as None, not as zero."""
    assert summary_ms(values) is None
