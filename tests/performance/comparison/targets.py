"""What is compared: a figure of ours over the peer's own, and the ratio that it is meant to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.performance.comparison.measuring import MIXED, Figures


@dataclass(frozen=True, slots=True)
class Target:
    """A ratio of ours to the peer's.

    Args:
        figure: its name in both servers' figures.
        unit: of the figure.
        bound: the ratio that is meant to be kept.
        at_least: the bound is one from below.
        digits: of the figures as they are shown.
    """

    figure: str
    unit: str
    bound: float
    at_least: bool = False
    digits: int = 1


TARGETS: Sequence[Target] = (
    Target("64 streams: CPU beside the GPU", "µs/token", 0.12),
    Target("64 streams: CPU of all", "µs/token", 0.40),
    Target("64 streams: tokens/s", "tokens/s", 1.05, at_least=True, digits=0),
    Target("1 stream: TTFT p50", "ms", 1.3),
    Target("64 streams: TTFT p50", "ms", 1.0),
    Target("256 streams: TTFT p50", "ms", 0.9),
    Target("64 streams: ITL p99", "ms", 1.0),
    Target("256 streams: ITL p99", "ms", 1.0),
    Target("long prompt: TTFT p50", "ms", 1.0),
    Target(f"{MIXED}: ITL p99", "ms", 1.0),
    Target("logprobs, top 5: CPU of all", "µs/token", 0.5),
    Target("4 stop strings: CPU of all", "µs/token", 0.5),
    Target("n = 4: CPU of all", "µs/token", 0.5),
)

IDLE_BOUND_PERCENT = 2.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """A target, and what the rounds gave: medians of both servers, and the ratio of each round."""

    target: Target
    ours: float
    peers: float
    ratios: Sequence[float]

    @property
    def ratio(self) -> float:
        """The ratio of the medians."""
        return self.ours / self.peers

    @property
    def is_met(self) -> bool:
        """Whether the ratio keeps its bound."""
        return self.ratio >= self.target.bound if self.target.at_least else self.ratio <= self.target.bound


def compare(ours: Sequence[Figures], peers: Sequence[Figures]) -> list[Comparison]:
    """Return all targets with what both servers gave, round by round."""
    return [_comparison(target, ours, peers) for target in TARGETS]


def _comparison(target: Target, ours: Sequence[Figures], peers: Sequence[Figures]) -> Comparison:
    own, others = [round_[target.figure] for round_ in ours], [round_[target.figure] for round_ in peers]
    ratios = [mine / other for mine, other in zip(own, others, strict=True)]
    return Comparison(target, median(own), median(others), ratios)
