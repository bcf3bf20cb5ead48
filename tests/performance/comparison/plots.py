"""The page's plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.performance.comparison.targets import Comparison

_PEERS, _OURS = "#9aa5b1", "#1f6feb"


def plot(comparisons: Sequence[Comparison], directory: Path) -> None:
    """Write cpu.svg and latency.svg: bars of both servers, each figure relative to the peer's."""
    directory.mkdir(parents=True, exist_ok=True)
    # Else each run gives other ids, and the file changes without a reason.
    mpl.rcParams["svg.hashsalt"] = "stream-omni"
    cpu = [each for each in comparisons if each.target.unit == "µs/token"]
    latency = [each for each in comparisons if each.target.unit == "ms"]
    _bars(cpu, "CPU a token, relative to vLLM's own server (less is better)", directory / "cpu.svg")
    _bars(latency, "Latency, relative to vLLM's own server (less is better)", directory / "latency.svg")


def _bars(comparisons: Sequence[Comparison], title: str, file: Path) -> None:
    figure = Figure(figsize=(9, 0.7 * len(comparisons) + 1.2), layout="constrained")
    axes: Axes = figure.subplots()
    places = range(len(comparisons))
    axes.barh([place + 0.2 for place in places], [1.0] * len(comparisons), height=0.36, color=_PEERS, label="vLLM")
    bars = axes.barh(
        [place - 0.2 for place in places],
        [each.ratio for each in comparisons],
        height=0.36,
        color=_OURS,
        label="Stream-Omni",
    )
    axes.bar_label(bars, fmt="%.2f", padding=3)
    for place, each in zip(places, comparisons, strict=True):
        axes.plot([each.target.bound] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1, linestyle=":")
    axes.set_yticks(list(places), [each.target.figure for each in comparisons])
    axes.invert_yaxis()
    axes.set_title(title + "; dotted: target", fontsize=10)
    axes.legend(loc="lower right")
    figure.savefig(file, metadata={"Date": None})
