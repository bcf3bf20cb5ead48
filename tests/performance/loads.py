"""A load whose CPU a token is asked for."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.service import STREAM_OMNI


def cost_a_token(
    url: str,
    model: str,
    processes: Mapping[str, int],
    directory: Path,
    streams: int,
    tokens: int,
    extra_body: str = "{}",
) -> dict[str, float]:
    """Let all streams begin at once and run to their end; return the CPU a token of each process in µs.

    Args:
        processes: ids by name.
        directory: where the report may lie.
        extra_body: more fields of each request, as JSON.
    """
    file = directory / "report.json"
    named = [part for name, pid in processes.items() for part in ("--pid", f"{name}={pid}")]
    load = ["--concurrency", str(streams), "--requests", str(streams), "--output-tokens", str(tokens)]
    body = ["--extra-body", json.dumps({"ignore_eos": True, **json.loads(extra_body)})]
    where = ["--url", url, "--model", model]
    command = [STREAM_OMNI, "bench", *where, *load, *body, *named, "--quiet", "--json", str(file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    report = json.loads(file.read_text())
    assert report["requests"]["completed"] == streams, report["errors"]
    return {name: entry["us_per_token"] for name, entry in report["cpu"]["processes"].items()}
