"""A tokenizer with filters and a frontend with named keys, before the engine of a running service."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from tests.e2e.service import STREAM_OMNI, Service, free_ports, wait_until


@dataclass(frozen=True)
class Filtered:
    """What runs, and the file that its tokenizer follows."""

    service: Service
    filters: Path
    log_file: Path
    metrics_url: str

    def headers(self, key: str) -> dict[str, str]:
        """The headers of a caller with this key."""
        return {"Authorization": f"Bearer {key}"}

    def log(self) -> list[dict[str, object]]:
        """The tokenizer's log lines so far."""
        return [json.loads(line) for line in self.log_file.read_text().splitlines() if line.startswith("{")]


@contextmanager
def running_filtered(service: Service, directory: Path, rules: str, keys: str) -> Iterator[Filtered]:
    """Start both before the service's engine, with these rules and this file of keys; end them afterwards."""
    filters, keys_file, log_file = directory / "filters.toml", directory / "keys", directory / "tokenizer.jsonl"
    filters.write_text(rules)
    keys_file.write_text(keys)
    port, tokenizer_port, metrics_port = free_ports(3)
    tokenizer = {
        "OMNI_TOKENIZER_ENGINE": service.engine,
        "OMNI_TOKENIZER_PORT": str(tokenizer_port),
        "OMNI_TOKENIZER_METRICS_PORT": str(metrics_port),
        "OMNI_TOKENIZER_FILTERS_FILE": str(filters),
    }
    frontend = {
        "OMNI_FRONTEND_TOKENIZERS": f"127.0.0.1:{tokenizer_port}",
        "OMNI_FRONTEND_PORT": str(port),
        "OMNI_FRONTEND_API_KEYS_FILE": str(keys_file),
    }
    url = f"http://127.0.0.1:{port}"
    with log_file.open("w") as log, (directory / "frontend.jsonl").open("w") as frontend_log:
        processes = [_start("tokenizer", tokenizer, log.fileno()), _start("frontend", frontend, frontend_log.fileno())]
        try:
            wait_until(lambda: _is_ready(url), 60, "filters: not ready")
            served = replace(service, url=url, tokenizer=f"127.0.0.1:{tokenizer_port}")
            yield Filtered(served, filters, log_file, f"http://127.0.0.1:{metrics_port}/metrics")
        finally:
            for process in processes[::-1]:
                process.terminate()
            codes = [process.wait(40) for process in processes]
    assert codes == [0, 0]


def _start(tier: str, settings: dict[str, str], log: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([STREAM_OMNI, tier], env=os.environ | settings, stdout=log, stderr=log)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready").status_code == 200
    except httpx.TransportError:
        return False
