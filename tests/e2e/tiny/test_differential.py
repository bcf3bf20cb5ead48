"""The same requests to vLLM's own server and to us: equal to the token, or different for a reason written down."""

from __future__ import annotations

import pytest

from tests.e2e.differential.bad_requests import bad_requests
from tests.e2e.differential.compatibility import PAGE, page
from tests.e2e.differential.explained import EXPLAINED_ANSWERS, EXPLAINED_OUTCOMES, SERVED_BY_US, unexplained_outcome
from tests.e2e.differential.record import Difference, Record, compare, record_ours, unexplained_differences
from tests.e2e.differential.requests import Case
from tests.e2e.differential.token_ids import has_token_ids
from tests.e2e.service import Service


@pytest.fixture(scope="module")
def our_record(service: Service, compared: list[Case]) -> Record:
    """What our service answers."""
    return record_ours(service, compared)


@pytest.fixture(scope="module")
def differing(compared: list[Case], our_record: Record, peer_record: Record) -> list[Difference]:
    """All differences of the answers."""
    return compare(compared, our_record.answers, peer_record.answers)


def test_answers_equal_vllms(differing: list[Difference]) -> None:
    """Text, token ids, finish and stop reasons and usage are vLLM's, but where an explanation covers the difference."""
    unexplained = unexplained_differences(differing)
    assert not unexplained, unexplained


def test_the_requests_are_served(peer_record: Record) -> None:
    """vLLM's server serves all of the requests, so that there are answers to compare."""
    assert {name: answer.error for name, answer in peer_record.answers.items() if not answer.served} == {}


def test_token_ids_are_compared(our_record: Record, peer_record: Record, compared: list[Case]) -> None:
    """Nearly all answers of both sides have token ids where they can be had, so that their equality means something."""
    names = [case.name for case in compared if has_token_ids(case)]
    assert len(names) > 250
    for record in (our_record, peer_record):
        answers = [record.answers[name] for name in names]
        with_ids = [a for a in answers if any(choice.token_ids for choice in a.choices.values())]
        assert len(with_ids) > 0.9 * len(answers)


@pytest.mark.parametrize("name", EXPLAINED_ANSWERS)
def test_explanation_is_needed(name: str, differing: list[Difference]) -> None:
    """Each explanation covers a difference that there is: one that is gone is struck from the table."""
    assert any(each.explanation == name for each in differing)


def test_wrong_requests(our_record: Record, peer_record: Record, service: Service) -> None:
    """To wrong requests both answer with the same class of status and an error object, or the table says why not."""
    wrong = [
        unexplained_outcome(request, our_record.outcomes[request.name], peer_record.outcomes[request.name])
        for request in bad_requests(service.model)
    ]
    assert [each for each in wrong if each is not None] == []
    assert EXPLAINED_OUTCOMES.keys() <= our_record.outcomes.keys()


def test_wrong_requests_are_refused(our_record: Record) -> None:
    """We answer each wrong request with a status of the 4xx class and OpenAI's error object."""
    served = [name for name, each in our_record.outcomes.items() if not 400 <= each.status < 500]
    assert tuple(served) == SERVED_BY_US
    assert [name for name, each in our_record.outcomes.items() if not each.has_error_object] == served


def test_compatibility_page_is_current(
    compared: list[Case],
    differing: list[Difference],
    our_record: Record,
    peer_record: Record,
    service: Service,
    request: pytest.FixtureRequest,
) -> None:
    """The page of what OpenAI, vLLM and we do tells what was answered just now; `make compatibility` writes it."""
    text = page(compared, bad_requests(service.model), differing, our_record, peer_record)
    if request.config.getoption("--write-compatibility"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
