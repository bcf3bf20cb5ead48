"""Puts the loads on a running server and takes the figures that the page tells."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from services.cli.bench.cpu import CpuMeter
from services.cli.bench.options import Processes
from tests.e2e.service import STREAM_OMNI
from tests.performance.comparison.scenarios import (
    ARRIVING,
    ARRIVING_AFTER_SECONDS,
    IDLE_SECONDS,
    LOADS,
    RUNNING,
    Load,
)
from tests.performance.comparison.servers import Target

Figures = dict[str, float]
"""Figures of one round by their names."""

MIXED = "16 streams while 8 long prompts arrive"


def measure(target: Target) -> Figures:
    """Put all loads on a server, one after the other, and return every figure."""
    figures: Figures = {}
    for name, load in LOADS.items():
        figures |= _figures(name, target, _bench(target, load))
    figures |= _mixed(target)
    figures |= _idle(target)
    return figures


def _figures(name: str, target: Target, report: dict[str, Any]) -> Figures:
    cpu = report["cpu"]
    return {
        f"{name}: tokens/s": report["tokens"]["completion_per_s"],
        f"{name}: TTFT p50": report["ttft_ms"]["p50"],
        f"{name}: ITL p99": report["itl_ms"]["p99"],
        f"{name}: CPU beside the GPU": cpu["processes"][target.beside_gpu]["us_per_token"],
        f"{name}: CPU of all": cpu["total"]["us_per_token"],
    } | {
        f"{name}: CPU of the {process}": entry["us_per_token"]
        for process, entry in cpu["processes"].items()
        if len(cpu["processes"]) > 1
    }


def _mixed(target: Target) -> Figures:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "running.json")
        running = subprocess.Popen(_command(target, RUNNING, file), stdout=subprocess.DEVNULL)
        time.sleep(ARRIVING_AFTER_SECONDS)
        _bench(target, ARRIVING)
        assert running.poll() is None, "the streams ended before the prompts were answered"
        assert running.wait() == 0
        report = json.loads(file.read_text())
    _check(report)
    return {f"{MIXED}: ITL p99": report["itl_ms"]["p99"]}


def _idle(target: Target) -> Figures:
    meter = CpuMeter([Processes(name, (pid,)) for name, pid in target.processes.items()], with_children=False)
    time.sleep(IDLE_SECONDS)
    shares = {use.name: 100 * (use.seconds or 0.0) / IDLE_SECONDS for use in meter.used()}
    return {f"idle: {name}": share for name, share in shares.items()}


def _bench(target: Target, load: Load) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "report.json")
        subprocess.run(_command(target, load, file), check=True, stdout=subprocess.DEVNULL)
        report: dict[str, Any] = json.loads(file.read_text())
    _check(report)
    return report


def _check(report: dict[str, Any]) -> None:
    assert report["requests"]["completed"] == report["requests"]["sent"], report["errors"]


def _command(target: Target, load: Load, file: Path) -> list[str]:
    processes = [part for name, pid in target.processes.items() for part in ("--pid", f"{name}={pid}")]
    where = ["--url", target.url, "--model", target.model]
    return [STREAM_OMNI, "bench", *where, *load.arguments(), *processes, "--quiet", "--json", str(file)]
