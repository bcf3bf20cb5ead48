"""What a run found, as an object."""

from __future__ import annotations

import json

import pytest

from services.cli.bench.cpu import CpuUse
from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.report import report
from services.cli.bench.token_stream import Failure
from tests.cli.bench.outcomes import outcome, record
from tests.cli.bench.runs import finished_run


@pytest.fixture
def recorder() -> Recorder:
    """Two completed requests, one cancelled, one unfinished, three failed."""
    recorder = Recorder()
    record(recorder, outcome(1.0, 2.0, 4.0, tokens=6, done_at=5.0), Ending.COMPLETED)
    record(recorder, outcome(2.0, 3.0, 4.0, tokens=6, done_at=5.0), Ending.COMPLETED)
    record(recorder, outcome(3.0, 4.0), Ending.CANCELLED)
    record(recorder, outcome(4.0), Ending.UNFINISHED)
    record(recorder, outcome(), Ending.FAILED, Failure("timeout", "no end after 5 s"))
    record(recorder, outcome(), Ending.FAILED, Failure("HTTP 429", "wait"))
    record(recorder, outcome(), Ending.FAILED, Failure("HTTP 429", "wait longer"))
    return recorder


def test_requests_are_counted_by_their_end(recorder: Recorder) -> None:
    """Every request that was sent has exactly one end."""
    assert report(finished_run(recorder))["requests"] == {
        "sent": 7,
        "completed": 2,
        "cancelled": 1,
        "unfinished": 1,
        "failed": 3,
        "completed_per_s": 0.2,
    }


def test_tokens_of_left_streams_are_estimated(recorder: Recorder) -> None:
    """Where the server's count is missing, chunks stand for as many tokens as elsewhere: here two each."""
    assert report(finished_run(recorder))["tokens"] == {
        "completion": 18,
        "completion_estimated": 6,
        "completion_per_s": 1.8,
        "chunks": 9,
        "per_chunk": 2.0,
        "prompt": 10,
        "prompt_cached": 4,
        "prompt_per_s": 1.0,
    }


def test_latencies_are_of_all_that_got_so_far(recorder: Recorder) -> None:
    """First tokens and gaps of left streams count, too; ends and gaps per token only those of completed ones."""
    found = report(finished_run(recorder))
    assert (found["ttft_ms"]["count"], found["ttft_ms"]["p50"], found["ttft_ms"]["max"]) == (4, 2500.0, 4000.0)
    assert (found["itl_ms"]["count"], found["itl_ms"]["mean"], found["itl_ms"]["max"]) == (5, 1200.0, 2000.0)
    assert (found["gap_per_token_ms"]["count"], found["gap_per_token_ms"]["max"]) == (2, 600.0)
    assert (found["e2e_ms"]["count"], found["e2e_ms"]["mean"]) == (2, 5000.0)


def test_tokens_of_failed_requests_count() -> None:
    """What came before a failure was made and sent, so it counts, but its times do not."""
    recorder = Recorder()
    record(recorder, outcome(1.0, 2.0), Ending.FAILED, Failure("stream ended without [DONE]", ""))
    found = report(finished_run(recorder))
    assert (found["tokens"]["completion"], found["ttft_ms"]) == (2, None)


def test_errors_are_grouped_by_kind(recorder: Recorder) -> None:
    """The most frequent kind comes first, with what the first of it said."""
    assert report(finished_run(recorder))["errors"] == [
        {"kind": "HTTP 429", "count": 2, "example": "wait"},
        {"kind": "timeout", "count": 1, "example": "no end after 5 s"},
    ]


def test_cpu_is_told_a_token(recorder: Recorder) -> None:
    """Each name and all together have seconds, cores and microseconds a token; so has the generator."""
    cpu = [CpuUse("frontend", (1, 2), 0.9), CpuUse("tokenizer", (3,), 0.45)]
    found = report(finished_run(recorder, cpu=cpu, generator_cpu_s=0.09))
    assert found["cpu"]["processes"]["frontend"] == {
        "pids": [1, 2],
        "cpu_s": 0.9,
        "cores": 0.09,
        "us_per_token": 50_000.0,
    }
    assert found["cpu"]["total"] == {"cpu_s": 1.35, "cores": 0.135, "us_per_token": 75_000.0}
    assert found["generator"] == {"cpu_s": 0.09, "cores": 0.009, "us_per_token": 5000.0}


def test_unknown_cpu_is_not_taken_for_none(recorder: Recorder) -> None:
    """When a process died, neither it nor the sum has a figure, and a warning says so."""
    found = report(finished_run(recorder, cpu=[CpuUse("a", (1,), None), CpuUse("b", (2,), 1.0)]))
    assert found["cpu"]["processes"]["a"]["us_per_token"] is None
    assert found["cpu"]["total"]["us_per_token"] is None
    assert found["warnings"] == ["a process of a ended before the run did: no CPU figure"]


def test_nothing_measured_is_none() -> None:
    """A run without an answer has no latencies and no CPU a token."""
    found = report(finished_run(Recorder()))
    names = ("ttft_ms", "itl_ms", "gap_per_token_ms", "e2e_ms", "schedule_lag_ms", "goodput", "cpu")
    assert [found[name] for name in names] == [None] * len(names)
    assert found["generator"]["us_per_token"] is None


def test_warnings_tell_what_blurs_the_figures() -> None:
    """A busy generator, late requests and answers without usage are named."""
    recorder = Recorder()
    record(recorder, outcome(1.0, done_at=2.0), Ending.COMPLETED)
    recorder.lags_s = [0.05] * 10
    busy, late, uncounted = report(finished_run(recorder, generator_cpu_s=8.0))["warnings"]
    assert "used 0.80 of one core" in busy
    assert "sent late (p99 50 ms)" in late
    assert "1 answers came without usage" in uncounted


def test_quiet_run_has_no_warnings(recorder: Recorder) -> None:
    """Nothing is warned of without a reason."""
    assert report(finished_run(recorder))["warnings"] == []


def test_load_is_told_as_it_was_given(recorder: Recorder) -> None:
    """The report says what was asked for, so that it can be asked for again; the whole of it is JSON."""
    arguments = ("--request-rate", "5", "--prompt-tokens", "4-8", "--shared-prefix", "9/0.5", "--seed", "3")
    found = report(finished_run(recorder, *arguments, "--extra-body", '{"n": 2}'))
    load = found["load"]
    assert (load["request_rate"], load["prompt_tokens"], load["seed"]) == (5.0, "4-8", 3)
    assert load["shared_prefix"] == {"tokens": 9, "share": 0.5}
    assert (load["extra_body"], load["concurrency"], load["burstiness"]) == ({"n": 2}, None, 1.0)
    assert found["started_at"] == "2026-01-02T03:04:05+00:00"
    assert json.loads(json.dumps(found)) == found
