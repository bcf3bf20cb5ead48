"""The default model behind vLLM's own server first, then behind ours; each is started once for this folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.differential.answers import Answer
from tests.e2e.differential.record import peers_answers
from tests.e2e.differential.requests import Case, few_cases
from tests.e2e.peer import PeerAnswer, peer_answers, running_peer
from tests.e2e.service import Service, running_service

PROMPTS = (
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Übersetze ins Englische: Guten Morgen! 😀",
)


@dataclass(frozen=True)
class PeerRecord:
    """What vLLM's own server answers to `PROMPTS`, and to the requests that are compared, by their names."""

    prompts: dict[str, PeerAnswer]
    answers: dict[str, Answer]


@pytest.fixture(scope="package")
def compared(smollm2: Path) -> list[Case]:
    """The requests that both servers are given."""
    return few_cases(smollm2.name)


@pytest.fixture(scope="package")
def peer_record(smollm2: Path, compared: list[Case], tmp_path_factory: pytest.TempPathFactory) -> PeerRecord:
    """What vLLM's own server answers. It has ended when this returns."""
    with running_peer(smollm2, tmp_path_factory.mktemp("peer") / "log.txt") as url:
        prompts = peer_answers(url, smollm2.name, PROMPTS)
        return PeerRecord(prompts, peers_answers(url, compared))


@pytest.fixture(scope="package")
def vllm_answers(peer_record: PeerRecord) -> dict[str, PeerAnswer]:
    """What vLLM's own server answers to `PROMPTS`, greedily."""
    return peer_record.prompts


@pytest.fixture(scope="package")
def service(smollm2: Path, peer_record: PeerRecord, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Our service on the same model."""
    with running_service(smollm2, tmp_path_factory.mktemp("service") / "log.jsonl") as running:
        yield running
