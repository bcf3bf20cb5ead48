"""Both servers' answers to the same requests: the peer's are recorded first, as only one vLLM fits on a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tests.e2e.differential.answers import Answer, ask_all, differences
from tests.e2e.differential.bad_requests import Outcome, bad_requests, outcomes
from tests.e2e.differential.explained import explanation_of
from tests.e2e.differential.requests import Case
from tests.e2e.differential.token_ids import has_token_ids, our_token_ids
from tests.e2e.service import Service


@dataclass(frozen=True)
class Record:
    """What one server answered, by the names of the requests."""

    answers: Mapping[str, Answer]
    outcomes: Mapping[str, Outcome]


@dataclass(frozen=True)
class Difference:
    """How two answers differ, and the name of its explanation."""

    case: Case
    found: Mapping[str, object]
    explanation: str | None


def record_peer(url: str, model: str, cases: Sequence[Case]) -> Record:
    """Ask vLLM's server everything."""
    return Record(peers_answers(url, cases), outcomes(url, bad_requests(model)))


def peers_answers(url: str, cases: Sequence[Case]) -> dict[str, Answer]:
    """Ask vLLM's server all cases, with their token ids where ours can be had too."""
    return ask_all(
        url,
        [
            replace(case, body={**case.body, "return_token_ids": True}) if has_token_ids(case) else case
            for case in cases
        ],
    )


def record_ours(service: Service, cases: Sequence[Case]) -> Record:
    """Ask our service everything."""
    return Record(our_answers(service, cases), outcomes(service.url, bad_requests(service.model)))


def our_answers(service: Service, cases: Sequence[Case]) -> dict[str, Answer]:
    """Ask our service all cases: text over HTTP, token ids over the text service."""
    answers = ask_all(service.url, cases)
    with_ids = [case for case in cases if answers[case.name].served and has_token_ids(case)]
    for name, choices in our_token_ids(service.tokenizer, with_ids).items():
        for index, token_ids in choices.items():
            answers[name].choices[index].token_ids = token_ids
    return answers


def compare(cases: Sequence[Case], ours: Mapping[str, Answer], peers: Mapping[str, Answer]) -> list[Difference]:
    """Return all differences of the answers, explained or not."""
    differing = []
    for case in cases:
        our, peer = ours[case.name], peers[case.name]
        found = differences(our, peer)
        if found:
            differing.append(Difference(case, found, explanation_of(case, our, peer, set(found))))
    return differing


def unexplained_differences(differing: Sequence[Difference]) -> str:
    """Return the differences without an explanation, a line each; empty if there are none."""
    return "\n".join(f"{each.case.name}: {each.found}" for each in differing if each.explanation is None)
