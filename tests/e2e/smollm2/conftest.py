"""The default model behind vLLM's own server first, then behind ours; each is started once for this folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.differential.answers import Answer
from tests.e2e.differential.record import peers_answers
from tests.e2e.differential.requests import Case, few_cases
from tests.e2e.differential.tool_requests import few_tool_cases
from tests.e2e.peer import TOOLS, PeerAnswer, peer_answers, running_peer
from tests.e2e.service import Service, running_service
from tests.tools_template import with_tools

PROMPTS = (
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Übersetze ins Englische: Guten Morgen! 😀",
)

FILTERS = """
[[rule]]
name = "city"
action = "mask"
words = ["Paris"]
callers = ["filtered"]

[[rule]]
name = "secret"
action = "stop"
patterns = ['s[e3]cr[e3]t']
callers = ["filtered"]
"""


@dataclass(frozen=True)
class PeerRecord:
    """What vLLM's own server answers to `PROMPTS`, and to the requests that are compared, by their names."""

    prompts: dict[str, PeerAnswer]
    answers: dict[str, Answer]


@pytest.fixture(scope="package")
def compared(smollm2: Path) -> list[Case]:
    """The requests that both servers are given."""
    return [*few_cases(smollm2.name), *few_tool_cases(smollm2.name)]


@pytest.fixture(scope="package")
def peer_record(smollm2: Path, compared: list[Case], tmp_path_factory: pytest.TempPathFactory) -> PeerRecord:
    """What vLLM's own server answers, given a template that shows tools. It has ended when this returns."""
    directory = tmp_path_factory.mktemp("peer")
    template = directory / "template.jinja"
    template.write_text(with_tools((smollm2 / "chat_template.jinja").read_text(encoding="utf-8")), encoding="utf-8")
    with running_peer(smollm2, directory / "log.txt", f"--chat-template={template}", *TOOLS) as url:
        prompts = peer_answers(url, smollm2.name, PROMPTS)
        return PeerRecord(prompts, peers_answers(url, compared))


@pytest.fixture(scope="package")
def vllm_answers(peer_record: PeerRecord) -> dict[str, PeerAnswer]:
    """What vLLM's own server answers to `PROMPTS`, greedily."""
    return peer_record.prompts


@pytest.fixture(scope="package")
def service(smollm2: Path, peer_record: PeerRecord, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Our service on the same model. Its output filter is for callers of one name, who come over gRPC."""
    directory = tmp_path_factory.mktemp("service")
    filters = directory / "filters.toml"
    filters.write_text(FILTERS)
    with running_service(smollm2, directory / "log.jsonl", "--filters-file", str(filters)) as running:
        yield running
