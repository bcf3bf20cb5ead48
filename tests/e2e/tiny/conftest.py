"""Our service on the tiny random model: real vLLM at a speed at which the plumbing shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.service import Service, running_service

MAX_NUM_SEQS = 64


@pytest.fixture(scope="package")
def service(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running service; what exceeds `MAX_NUM_SEQS` waits in vLLM's queue."""
    log_file = tmp_path_factory.mktemp("service") / "log.jsonl"
    with running_service(tiny_model, log_file, "--engine-arg", f"max_num_seqs={MAX_NUM_SEQS}") as running:
        yield running
