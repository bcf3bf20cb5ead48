"""Requests that were as fast as they had to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.cli.bench.recording import Ending, Outcome, Recorder
from services.cli.bench.statistics import percentile


def goodput(targets: Mapping[str, float], recorder: Recorder, seconds: float) -> Mapping[str, Any]:
    """Return how many of the requests that were not cut off were within all targets; a failed one never is."""
    ended = recorder.ended(Ending.COMPLETED, Ending.FAILED)
    good = sum(outcome.ending is Ending.COMPLETED and is_good(outcome, targets) for outcome in ended)
    return {
        "targets": dict(targets),
        "good": good,
        "share": round(good / len(ended), 4) if ended else None,
        "requests_per_s": round(good / seconds, 4),
    }


def is_good(outcome: Outcome, targets: Mapping[str, float]) -> bool:
    """Return whether a completed request was within all targets.

    `itl_ms` limits the 99th percentile of its own gaps. What a request has no figure for, as a single token has no
    gap, is within.
    """
    gaps = sorted(outcome.gaps_s) if "itl_ms" in targets else []
    figures = {
        "ttft_ms": outcome.ttft_s,
        "itl_ms": percentile(gaps, 99) if gaps else None,
        "tpot_ms": outcome.gap_per_token_s,
        "e2e_ms": outcome.e2e_s,
    }
    return all((figures[name] or 0.0) * 1000 <= limit for name, limit in targets.items())
