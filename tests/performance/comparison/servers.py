"""The two servers, started on the same model with the same arguments of vLLM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.peer import peer_process
from tests.e2e.service import descendants, running_service
from tests.performance.comparison.scenarios import CONTEXT_LENGTH, MAX_NUM_SEQS

_OVERRIDES = json.dumps({"max_position_embeddings": CONTEXT_LENGTH})


@dataclass(frozen=True, slots=True)
class Target:
    """A running server.

    Args:
        beside_gpu: name of the process that shares its machine with the GPU; the engine core's own are left out.
        processes: ids of the processes outside the engine core by name.
    """

    url: str
    model: str
    beside_gpu: str
    processes: dict[str, int]


@contextmanager
def peer(model: Path, log_file: Path) -> Iterator[Target]:
    """Vllm's own OpenAI server."""
    options = (f"--max-num-seqs={MAX_NUM_SEQS}", f"--max-model-len={CONTEXT_LENGTH}", f"--hf-overrides={_OVERRIDES}")
    with peer_process(model, log_file, *options) as (url, pid):
        yield Target(url, model.name, "server", {"server": pid})


@contextmanager
def ours(model: Path, log_file: Path) -> Iterator[Target]:
    """All tiers, as `stream-omni up` starts them."""
    arguments = (f"max_num_seqs={MAX_NUM_SEQS}", f"max_model_len={CONTEXT_LENGTH}", f"hf_overrides={_OVERRIDES}")
    options = [part for argument in arguments for part in ("--engine-arg", argument)]
    with running_service(model, log_file, *options) as service:
        below = descendants(service.process.pid)
        tiers = ("engine", "tokenizer", "frontend")
        ids = {tier: service.process_ids(f"-m services.{tier}")[0] for tier in tiers}
        assert set(ids.values()) <= set(below)
        yield Target(service.url, model.name, "engine", ids)
