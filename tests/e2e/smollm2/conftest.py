"""The default model behind vLLM's own server first, then behind ours; each is started once for this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.peer import PeerAnswer, peer_answers
from tests.e2e.service import Service, running_service

PROMPTS = (
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Übersetze ins Englische: Guten Morgen! 😀",
)


@pytest.fixture(scope="package")
def vllm_answers(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, PeerAnswer]:
    """What vLLM's own server answers to `PROMPTS`, greedily. It has ended when this returns."""
    return peer_answers(smollm2, PROMPTS, tmp_path_factory.mktemp("peer") / "log.txt")


@pytest.fixture(scope="package")
def service(
    smollm2: Path, vllm_answers: dict[str, PeerAnswer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """Our service on the same model."""
    with running_service(smollm2, tmp_path_factory.mktemp("service") / "log.jsonl") as running:
        yield running
