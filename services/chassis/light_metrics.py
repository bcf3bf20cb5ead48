"""A counter and a histogram for what happens once a token.

prometheus_client's own take a lock and walk their buckets for each observation, 1 to 2 µs, so that any thread may
observe. These are observed by one thread and read by any.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class LightCounter(Collector):
    """A Prometheus counter without labels; what counts adds to `value`.

    Args:
        name, text: as prometheus_client's counters have them.
        registry: that it is registered with.
    """

    def __init__(self, name: str, text: str, registry: CollectorRegistry) -> None:
        self._name = name
        self._text = text
        self.value = 0
        registry.register(self)

    def collect(self) -> Iterable[CounterMetricFamily]:
        """The value now, for a scrape."""
        yield CounterMetricFamily(self._name, self._text, value=self.value)


class LightSeries:
    """The observations of one set of label values."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        # The last one counts what exceeds all bounds.
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value; a bound belongs to the bucket below it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class LightHistogram(Collector):
    """A Prometheus histogram whose observations cost a bisection and an addition.

    Args:
        name, text: as prometheus_client's histograms have them.
        labels: names of the labels.
        bounds: upper bounds of the buckets, rising, without infinity.
        registry: that it is registered with.
    """

    def __init__(
        self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._bounds = bounds
        self._series: dict[tuple[str, ...], LightSeries] = {}
        registry.register(self)

    def labels(self, *values: str) -> LightSeries:
        """The series of these label values, in the order of their names."""
        return self._series.setdefault(values, LightSeries(self._bounds))

    def collect(self) -> Iterable[HistogramMetricFamily]:
        """The values now, for a scrape."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for values, series in list(self._series.items()):
            buckets = list(zip(names, accumulate(series.counts), strict=True))
            family.add_metric(values, buckets, series.sum)
        yield family
