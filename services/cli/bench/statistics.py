"""Numbers that stand for many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

PERCENTILES = (50, 95, 99)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of sorted values, linearly between the two nearest: definition 7 of Hyndman and Fan (1996).

    Raises:
        IndexError: there are no values.
    """
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def summary_ms(seconds: Iterable[float | None]) -> Mapping[str, float | int] | None:
    """Return count, mean, percentiles and maximum in milliseconds of the values that are there; None without any."""
    ordered = sorted(value * 1000 for value in seconds if value is not None)
    if not ordered:
        return None
    figures: dict[str, float | int] = {"count": len(ordered), "mean": math.fsum(ordered) / len(ordered)}
    figures |= {f"p{percent}": percentile(ordered, percent) for percent in PERCENTILES}
    return {name: round(value, 4) for name, value in (figures | {"max": ordered[-1]}).items()}
