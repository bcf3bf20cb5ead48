"""Conversations and prompts to vLLM's own server and to us on a trained model: the same answers, to the token."""

from __future__ import annotations

from tests.e2e.differential.record import compare, our_answers, unexplained_differences
from tests.e2e.differential.requests import Case
from tests.e2e.service import Service
from tests.e2e.smollm2.conftest import PeerRecord


def test_answers_equal_vllms(service: Service, compared: list[Case], peer_record: PeerRecord) -> None:
    """Text, token ids, finish reasons and usage are vLLM's, but where an explanation covers the difference."""
    ours = our_answers(service, compared)
    unexplained = unexplained_differences(compare(compared, ours, peer_record.answers))
    assert not unexplained, unexplained
    assert all(answer.served for answer in peer_record.answers.values())
