"""Output filters over exact ids from real vLLM: mask, stop and report, by key, and a file that changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tokenizers import Tokenizer

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.e2e.filtering import Filtered, running_filtered
from tests.e2e.forced import body, ids_of, over_grpc
from tests.e2e.service import Service, wait_until

RULES = r"""
[[rule]]
name = "swearing"
action = "mask"
words = ["damned", "cafe"]
whole_words = true

[[rule]]
name = "numbers"
action = "mask"
patterns = ['\d{6,12}']
mask = "#"

[[rule]]
name = "secrets"
action = "stop"
words = ["the password is"]

[[rule]]
name = "weather"
action = "report"
words = ["rain"]

[[rule]]
name = "for alice"
action = "mask"
words = ["zebra"]
callers = ["alice"]
"""
ALICE, BOB, NOBODY = "so-alice-1", "so-bob-1", "so-nobody-1"
KEYS = f"alice: {ALICE}\nbob: {BOB}\n{NOBODY}\n"
MASK, STOP, REPORT = (
    text_pb2.FilterMatch.ACTION_MASK,
    text_pb2.FilterMatch.ACTION_STOP,
    text_pb2.FilterMatch.ACTION_REPORT,
)


@pytest.fixture(scope="module")
def filtered(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filtered]:
    """The filters before the package's engine."""
    with running_filtered(service, tmp_path_factory.mktemp("filters"), RULES, KEYS) as running:
        yield running


def whole(filtered: Filtered, ids: list[int], key: str = BOB, **fields: Any) -> dict[str, Any]:
    """The answer over HTTP in one piece."""
    asked = body(filtered.service, ids, **fields)
    response = httpx.post(
        f"{filtered.service.url}/v1/completions", json=asked, headers=filtered.headers(key), timeout=60
    )
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def chunks(filtered: Filtered, ids: list[int], key: str = BOB, **fields: Any) -> list[dict[str, Any]]:
    """The choices of a stream's chunks."""
    asked = body(filtered.service, ids, stream=True, **fields)
    url, headers = f"{filtered.service.url}/v1/completions", filtered.headers(key)
    with httpx.stream("POST", url, json=asked, headers=headers, timeout=60) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    return [json.loads(event)["choices"][0] for event in events]


def test_masked_in_every_way(filtered: Filtered, reference: Tokenizer) -> None:
    """Words and numbers that come in several tokens are masked whole, streamed, in one piece and over gRPC alike; the
    matches are told with the text and again at the end, and no token of masked text is told."""
    ids = ids_of(reference, "A DAMNED café, call 0123456789 now")
    text = "A ██████ ████, call ########## now"
    told = [
        {"action": "mask", "rule": "swearing", "start": 2, "length": 6},
        {"action": "mask", "rule": "swearing", "start": 9, "length": 4},
        {"action": "mask", "rule": "numbers", "start": 20, "length": 10},
    ]
    choice = whole(filtered, ids)["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["filter_matches"]) == (text, "length", told)
    assert "".join(choice["logprobs"]["tokens"]) == "A, call  now"
    pieces = chunks(filtered, ids)
    assert "".join(piece["text"] for piece in pieces) == text
    assert [match for piece in pieces[:-1] for match in piece.get("filter_matches", [])] == told
    assert pieces[-1]["filter_matches"] == told
    assert all(not piece.get("filter_matches") or not piece["text"] for piece in pieces)
    called = over_grpc(filtered.service, ids)
    assert called.text == text
    assert [(match.action, match.rule, match.start, match.length) for match in called.finished.filter_matches] == [
        (MASK, one["rule"], one["start"], one["length"]) for one in told
    ]
    assert reference.decode(called.token_ids) == "A, call  now"
    assert called.finished.usage.completion_tokens == len(ids)


def test_stopped_in_every_way(filtered: Filtered, reference: Tokenizer) -> None:
    """At the token that completes a stopping match the choice ends as content_filter, with nothing of the match; the
    engine is free at once, long before the tokens that the request allows; usage counts what was generated."""
    before = "It rains; "
    ids = ids_of(reference, f"{before}The password is") + ids_of(reference, " hunter2" * 40)
    told = [
        {"action": "report", "rule": "weather", "start": 3, "length": 4},
        {"action": "stop", "rule": "secrets", "start": 10, "length": 15},
    ]
    answer = whole(filtered, ids)
    choice = answer["choices"][0]
    assert (choice["text"], choice["finish_reason"]) == (before, "content_filter")
    assert choice["filter_matches"] == told
    used = len(ids_of(reference, f"{before}The password is"))
    assert answer["usage"]["completion_tokens"] == used
    wait_until(filtered.service.is_idle, 1, "the engine goes on")
    pieces = chunks(filtered, ids)
    assert "".join(piece["text"] for piece in pieces) == before
    assert pieces[-1]["finish_reason"] == "content_filter" and pieces[-1]["filter_matches"] == told
    called = over_grpc(filtered.service, ids)
    assert (called.text, called.finished.reason) == (before, sampling_pb2.FINISH_REASON_CONTENT_FILTER)
    assert [match.action for match in called.finished.filter_matches] == [REPORT, STOP]
    assert called.finished.usage.completion_tokens == used
    assert "pass" not in reference.decode(called.token_ids)


def test_chats_are_filtered(filtered: Filtered) -> None:
    """A chat's content is filtered as a completion's text is."""
    asked = {
        "model": filtered.service.model,
        "messages": [{"role": "user", "content": "Say it."}],
        "max_tokens": 40,
        "structured_outputs": {"choice": ["well, damned rain"]},
    }
    response = httpx.post(
        f"{filtered.service.url}/v1/chat/completions", json=asked, headers=filtered.headers(BOB), timeout=60
    )
    choice = response.json()["choices"][0]
    assert choice["message"]["content"] == "well, ██████ rain"
    assert [match["rule"] for match in choice["filter_matches"]] == ["swearing", "weather"]


@pytest.mark.parametrize(("key", "shown"), [(ALICE, "a █████ here"), (BOB, "a zebra here"), (NOBODY, "a zebra here")])
def test_rules_of_a_key(filtered: Filtered, reference: Tokenizer, key: str, shown: str) -> None:
    """A rule for one name of a key holds for its requests and for no other's; gRPC callers say the name themselves."""
    ids = ids_of(reference, "a zebra here")
    choice = whole(filtered, ids, key)["choices"][0]
    assert choice["text"] == shown
    assert ("filter_matches" in choice) is (key == ALICE)
    assert over_grpc(filtered.service, ids, caller="alice").text == "a █████ here"


def test_the_prompt_is_not_filtered(filtered: Filtered, reference: Tokenizer) -> None:
    """An echoed prompt is the caller's own text and comes as it is."""
    answer = whole(filtered, ids_of(reference, " damned"), prompt="My damned", echo=True)
    assert answer["choices"][0]["text"] == "My damned ██████"


def test_a_changed_file_holds_without_a_restart(filtered: Filtered, reference: Tokenizer) -> None:
    """New rules hold a moment after the file is saved; a broken version changes nothing and is logged; matches are
    counted by rule, and no log line holds filtered text."""
    ids = ids_of(reference, "a giraffe, damned")

    def shown() -> str:
        return str(whole(filtered, ids)["choices"][0]["text"])

    assert shown() == "a giraffe, ██████"
    filtered.filters.write_text(RULES + '[[rule]]\nname = "new"\naction = "mask"\nwords = ["giraffe"]\n')
    wait_until(lambda: shown() == "a ███████, ██████", 5, "the new rule does not hold")
    filtered.filters.write_text("[[rule]]\nname = 'broken'\naction = 'mask'\npatterns = ['(a+)+']\n")
    wait_until(
        lambda: any("repetition without an end" in str(line.get("error")) for line in filtered.log()),
        5,
        "the broken file is not logged",
    )
    assert shown() == "a ███████, ██████"
    assert 'streamomni:text_filter_matches_total{action="mask",rule="swearing"}' in httpx.get(filtered.metrics_url).text
    lines = [line for line in filtered.log() if line["event"] == "output filter matched"]
    assert lines and all("damned" not in str(line) and "giraffe" not in str(line) for line in filtered.log())
    filtered.filters.write_text(RULES)
    wait_until(lambda: "giraffe" in shown(), 5, "the old rules do not hold again")
