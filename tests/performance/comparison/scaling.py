"""What a token and a stream cost from few streams to many, over a scripted engine."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.service import STREAM_OMNI
from tests.performance.scripted_stack import MODEL, Stack, scripted_stack

STEP_SECONDS = 0.05
OUTPUT_TOKENS = 200
# Streams, and tokenizers that share them.
SIZES = ((64, 1), (256, 1), (1000, 1), (1000, 2))


@dataclass(frozen=True, slots=True)
class ScalingFigures:
    """One size. `us_per_token` is by tier, and of all; memory is what the tiers took on top together."""

    streams: int
    tokenizers: int
    steps_per_second: float
    tokens_per_second: float
    us_per_token: dict[str, float]
    kilobytes_per_stream: float


def measure_scaling(model: Path, directory: Path) -> list[ScalingFigures]:
    """Measure all sizes."""
    return [_measure(model, directory, streams, tokenizers) for streams, tokenizers in SIZES]


def _measure(model: Path, directory: Path, streams: int, tokenizers: int) -> ScalingFigures:
    size = {"streams": streams, "step_seconds": STEP_SECONDS, "tokenizers": tokenizers}
    with scripted_stack(model, directory, **size) as stack:  # type: ignore[arg-type]  # as the names say
        file = directory / "scaling.json"
        subprocess.run(_command(stack, 16, 16, file), check=True, stdout=subprocess.DEVNULL)
        before = _resident_kilobytes(stack)
        running = subprocess.Popen(_command(stack, streams, OUTPUT_TOKENS, file), stdout=subprocess.DEVNULL)
        most = before
        while running.poll() is None:
            most = max(most, _resident_kilobytes(stack))
            time.sleep(0.2)
        assert running.returncode == 0
        report = json.loads(file.read_text())
    assert report["requests"]["completed"] == streams, report["errors"]
    cpu = report["cpu"]
    costs = {name: entry["us_per_token"] for name, entry in cpu["processes"].items()}
    return ScalingFigures(
        streams,
        tokenizers,
        1 / STEP_SECONDS,
        report["tokens"]["completion_per_s"],
        costs | {"all": cpu["total"]["us_per_token"]},
        (most - before) / streams,
    )


def _command(stack: Stack, streams: int, tokens: int, file: Path) -> list[str]:
    named = [f"{tier}={','.join(map(str, ids))}" for tier, ids in stack.processes.items()]
    processes = [part for each in named for part in ("--pid", each)]
    load = ["--concurrency", str(streams), "--requests", str(streams), "--output-tokens", str(tokens)]
    body = ["--extra-body", '{"ignore_eos": true}']
    where = ["--url", stack.url, "--model", MODEL]
    return [STREAM_OMNI, "bench", *where, *load, *body, *processes, "--quiet", "--json", str(file)]


def _resident_kilobytes(stack: Stack) -> int:
    """Memory that all processes hold now (https://man7.org/linux/man-pages/man5/proc_pid_status.5.html)."""
    total = 0
    for ids in stack.processes.values():
        for pid in ids:
            status = Path(f"/proc/{pid}/status").read_text()
            total += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return total
