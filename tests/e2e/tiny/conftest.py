"""The tiny random model, real vLLM at a speed at which the plumbing shows: the peer first, then our service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from tests.e2e.differential.record import Record, record_peer
from tests.e2e.differential.requests import Case, cases
from tests.e2e.differential.tool_requests import reasoning_cases, tool_cases
from tests.e2e.forced import reference_of
from tests.e2e.peer import REASONING, TOOLS, running_peer
from tests.e2e.service import Service, running_service
from tests.tiny_tools_model import TINY_TOOLS_MODEL_NAME, make_tiny_tools_model

MAX_NUM_SEQS = 64
CASES = 300


@pytest.fixture(scope="package")
def tiny_model(tiny_model: Path) -> Path:
    """The tiny model with tools and reasoning, in place of the plain one."""
    return make_tiny_tools_model(tiny_model.parent / TINY_TOOLS_MODEL_NAME, tiny_model)


@pytest.fixture(scope="package")
def reference(tiny_model: Path) -> Tokenizer:
    """Hugging Face's tokenizer of the model."""
    return reference_of(tiny_model)


@pytest.fixture(scope="package")
def compared(tiny_model: Path) -> list[Case]:
    """The requests that both servers are given."""
    name = tiny_model.name
    return [*cases(name, CASES), *tool_cases(name), *reasoning_cases(name)]


@pytest.fixture(scope="package")
def peer_record(tiny_model: Path, compared: list[Case], tmp_path_factory: pytest.TempPathFactory) -> Record:
    """What vLLM's own server answers. It has ended when this returns."""
    log_file = tmp_path_factory.mktemp("peer") / "log.txt"
    with running_peer(tiny_model, log_file, f"--max-num-seqs={MAX_NUM_SEQS}", *TOOLS, *REASONING) as url:
        return record_peer(url, tiny_model.name, compared)


@pytest.fixture(scope="package")
def service(tiny_model: Path, peer_record: Record, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running service; what exceeds `MAX_NUM_SEQS` waits in vLLM's queue."""
    log_file = tmp_path_factory.mktemp("service") / "log.jsonl"
    with running_service(tiny_model, log_file, "--engine-arg", f"max_num_seqs={MAX_NUM_SEQS}") as running:
        yield running
