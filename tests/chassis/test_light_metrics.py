from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from services.chassis.light_metrics import LightCounter, LightHistogram

BOUNDS = (0.001, 0.01, 0.5, 1.0, 2.5)


@given(st.lists(st.one_of(st.sampled_from(BOUNDS), st.floats(0, 10, allow_nan=False))))
def test_a_scrape_reads_as_that_of_prometheus_client(values: list[float]) -> None:
    """Buckets, count and sum have the names and values that prometheus_client's own histogram gives."""
    own, reference = CollectorRegistry(), CollectorRegistry()
    light = LightHistogram("a:seconds", "Text.", ["model"], BOUNDS, own).labels("m")
    heavy = Histogram("a:seconds", "Text.", ["model"], buckets=BOUNDS, registry=reference).labels("m")
    for value in values:
        light.observe(value)
        heavy.observe(value)

    assert _lines(own) == _lines(reference)


def test_a_counter_reads_as_that_of_prometheus_client() -> None:
    """It has the name and the value that prometheus_client's own counter gives."""
    own, reference = CollectorRegistry(), CollectorRegistry()
    light = LightCounter("a:tokens", "Text.", own)
    heavy = Counter("a:tokens", "Text.", registry=reference)
    for count in (1, 4):
        light.value += count
        heavy.inc(count)
    assert _lines(own) == _lines(reference)


def test_series_are_there_from_the_first_mention() -> None:
    """A series that nothing was observed of is told as zeros, and asking for it again gives the same one."""
    registry = CollectorRegistry()
    histogram = LightHistogram("a:seconds", "Text.", ["model"], BOUNDS, registry)
    assert histogram.labels("m") is histogram.labels("m")
    assert registry.get_sample_value("a:seconds_count", {"model": "m"}) == 0


def _lines(registry: CollectorRegistry) -> list[str]:
    # The reference tells its time of creation too.
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
