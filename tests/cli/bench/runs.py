"""A run that is over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from services.cli.bench.cpu import CpuUse
from services.cli.bench.recording import Recorder
from services.cli.bench.report import Run
from tests.cli.bench.run_options import options


def finished_run(
    recorder: Recorder, *arguments: str, cpu: Sequence[CpuUse] = (), generator_cpu_s: float = 0.1, seconds: float = 10.0
) -> Run:
    """A run of ten seconds with these options."""
    return Run(
        url="http://127.0.0.1:8000",
        model="m",
        options=options(*arguments),
        recorder=recorder,
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        duration_s=seconds,
        interrupted=False,
        cpu=cpu,
        generator_cpu_s=generator_cpu_s,
    )
