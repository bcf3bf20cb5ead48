"""What is sent and when."""

from __future__ import annotations

import json
from itertools import islice, pairwise
from statistics import mean, stdev
from typing import Any

import pytest

from services.cli.bench.plan import Plan, PlannedRequest
from services.cli.bench.trace import TraceEntry
from tests.cli.bench.run_options import options


def planned(*arguments: str) -> list[PlannedRequest]:
    """The first 2000 requests of a run."""
    return list(islice(Plan(options(*arguments), "m", ()).requests(), 2000))


def body(request: PlannedRequest) -> dict[str, Any]:
    """What it sends."""
    fields: dict[str, Any] = json.loads(request.body)
    return fields


def test_chat_is_one_message() -> None:
    """A chat sends its text as the user's, streams, and asks for the usage."""
    plan = Plan(options("--output-tokens", "9"), "m", ())
    fields = body(next(plan.requests()))
    (message,) = fields.pop("messages")
    assert message["role"] == "user" and message["content"]
    assert fields == {"model": "m", "max_tokens": 9, "stream": True, "stream_options": {"include_usage": True}}
    assert plan.path == "/v1/chat/completions"


def test_completion_has_a_prompt() -> None:
    """A completion sends text, or token ids where they are asked for."""
    plan = Plan(options("--endpoint", "completions"), "m", ())
    assert isinstance(body(next(plan.requests()))["prompt"], str)
    assert plan.path == "/v1/completions"
    (ids, *_) = planned("--endpoint", "completions", "--prompt-ids", "--vocabulary", "50", "--prompt-tokens", "7")
    assert len(body(ids)["prompt"]) == 7


def test_extra_body_is_added() -> None:
    """More fields go out as they are given."""
    (first, *_) = planned("--extra-body", '{"n": 2, "stop": ["é"]}')
    assert body(first)["n"] == 2 and body(first)["stop"] == ["é"]


def test_number_of_requests_is_kept() -> None:
    """As many as asked for; without a number there is no end."""
    assert len(planned("--requests", "17")) == 17
    assert len(planned("--duration", "1")) == 2000


def test_closed_loop_has_no_times() -> None:
    """Where room decides, no time does."""
    assert {request.at_s for request in planned("--concurrency", "4", "--duration", "1")} == {None}


@pytest.mark.parametrize(("burstiness", "spread"), [("1", 1.0), ("4", 0.5), ("0.25", 2.0)])
def test_arrivals_follow_the_rate(burstiness: str, spread: float) -> None:
    """Pauses have the mean of the rate, and spread 1 / √burstiness around it: 1 is a Poisson process."""
    requests = planned("--request-rate", "50", "--burstiness", burstiness, "--duration", "1")
    times = [request.at_s for request in requests if request.at_s is not None]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert times[0] == 0.0 and len(times) == 2000
    assert mean(pauses) == pytest.approx(1 / 50, rel=0.15)
    assert stdev(pauses) / mean(pauses) == pytest.approx(spread, rel=0.15)


def test_cancels_have_their_share() -> None:
    """So many requests are left, after 1 to all but one of their chunks, and none when none is to be."""
    cuts = [request.cancel_after for request in planned("--cancel-share", "0.3", "--output-tokens", "10")]
    left = [cut for cut in cuts if cut is not None]
    assert set(left) <= set(range(1, 10))
    assert len(planned("--cancel-share", "1")) == sum(
        r.cancel_after is not None for r in planned("--cancel-share", "1")
    )
    assert {request.cancel_after for request in planned()} == {None}
    many = [request.cancel_after for request in planned("--cancel-share", "0.3", "--duration", "1")]
    assert 500 < sum(cut is not None for cut in many) < 700


def test_same_seed_is_the_same_load() -> None:
    """Texts, lengths, times and cancels repeat with the seed and change with it."""
    arguments = ("--request-rate", "5", "--output-tokens", "4-40", "--cancel-share", "0.5")
    assert planned(*arguments) == planned(*arguments)
    assert planned(*arguments) != planned(*arguments, "--seed", "1")


def test_one_option_does_not_change_what_another_draws() -> None:
    """The same requests are sent at another rate and with another share of cancels."""
    plain = planned("--output-tokens", "4-40")
    other = planned("--output-tokens", "4-40", "--request-rate", "5", "--cancel-share", "0.5")
    assert [request.body for request in plain] == [request.body for request in other]


def test_warm_up_is_read_to_its_end() -> None:
    """It has its number of requests, none of which is left."""
    warmup = list(Plan(options("--warmup", "5", "--cancel-share", "1"), "m", ()).warmup())
    assert [request.cancel_after for request in warmup] == [None] * 5


def test_trace_says_what_and_when() -> None:
    """Each entry is sent as it says; what it leaves open is by the options."""
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    entries = [TraceEntry(0.5, messages, 3), TraceEntry(0.7, "text", None), TraceEntry(2.0, 11, 5)]
    first, second, third = Plan(options("--trace", "x", "--output-tokens", "6"), "m", entries).requests()
    assert [first.at_s, second.at_s, third.at_s] == [0.5, 0.7, 2.0]
    assert body(first)["messages"] == messages
    assert body(second)["messages"] == [{"role": "user", "content": "text"}]
    assert len(body(third)["messages"][0]["content"].split()) == 11
    assert [body(request)["max_tokens"] for request in (first, second, third)] == [3, 6, 5]
