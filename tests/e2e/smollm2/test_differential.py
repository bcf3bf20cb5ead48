"""Conversations, prompts and tool calls to vLLM's own server and to us on a trained model: the same, to the token."""

from __future__ import annotations

import pytest

from tests.e2e.differential.explained_calls import EXPLAINED_MODELS_CALLS
from tests.e2e.differential.record import Difference, compare, our_answers, unexplained_differences
from tests.e2e.differential.requests import Case
from tests.e2e.service import Service
from tests.e2e.smollm2.conftest import PeerRecord


@pytest.fixture(scope="module")
def differing(service: Service, compared: list[Case], peer_record: PeerRecord) -> list[Difference]:
    """All differences of the answers."""
    return compare(compared, our_answers(service, compared), peer_record.answers)


def test_answers_equal_vllms(differing: list[Difference], peer_record: PeerRecord) -> None:
    """Text, tool calls, token ids, finish reasons and usage are vLLM's, but where an explanation covers the
    difference."""
    unexplained = unexplained_differences(differing)
    assert not unexplained, unexplained
    assert all(answer.served for answer in peer_record.answers.values())


def test_the_model_calls_tools(compared: list[Case], peer_record: PeerRecord) -> None:
    """The model calls tools by itself in some of the answers, one and several, so that there are calls to compare."""
    free = [peer_record.answers[case.name] for case in compared if "tools" in case.body and case.parameter == "tools"]
    counts = {len(choice.tool_calls) for answer in free for choice in answer.choices.values()}
    assert counts == {0, 1, 2}


@pytest.mark.parametrize("name", EXPLAINED_MODELS_CALLS)
def test_explanation_is_needed(name: str, differing: list[Difference]) -> None:
    """Each explanation of a model's own calls covers a difference that there is."""
    assert any(each.explanation == name for each in differing)
