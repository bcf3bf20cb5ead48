"""Options of a run that go together, and those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.arguments import UsageError
from services.cli.bench.options import Lengths, Processes
from tests.cli.bench.run_options import options


def test_defaults_are_a_small_run() -> None:
    """Without options it is 100 chats, one after the other, of about 64 tokens each way."""
    given = options()
    assert (given.endpoint, given.concurrency, given.requests, given.duration_s) == ("chat", 1, 100, None)
    assert given.prompt_tokens == given.output_tokens == Lengths(64, 64)


def test_duration_alone_has_no_number_of_requests() -> None:
    """As many are sent as fit in the time, unless a number is given, too."""
    assert options("--duration", "5").requests is None
    assert options("--duration", "5", "--requests", "7").requests == 7


def test_schedules_have_no_concurrency() -> None:
    """With a rate or a trace, requests are sent at their times, however many run."""
    assert options("--request-rate", "5").concurrency is None
    given = options("--trace", "x.jsonl")
    assert (given.concurrency, given.requests, given.trace) == (None, None, Path("x.jsonl"))


def test_processes_are_repeatable() -> None:
    """Each name has its pids."""
    given = options("--pid", "a=1", "--pid", "b=2,3", "--with-children")
    assert given.processes == [Processes("a", (1,)), Processes("b", (2, 3))]
    assert given.with_children


def test_choices_are_those_of_the_extra_body() -> None:
    """More than one answer a request is asked for by n."""
    assert options().choices == 1
    assert options("--extra-body", '{"n": 4}').choices == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--concurrency 4 --request-rate 5", "--request-rate and --concurrency do not go together"),
        ("--trace x --concurrency 4", "--trace and --concurrency do not go together"),
        ("--trace x --request-rate 4", "--trace and --request-rate do not go together"),
        ("--trace x --requests 4", "--trace and --requests do not go together"),
        ("--burstiness 2", "give --request-rate with it"),
        ("--prompt-tokens 4 --prompt-characters 5", "--prompt-characters and --prompt-tokens do not go together"),
        ("--prompt-ids", "--prompt-ids and --vocabulary go together"),
        ("--vocabulary 100", "--prompt-ids and --vocabulary go together"),
        ("--prompt-ids --vocabulary 100", "give --endpoint completions with --prompt-ids"),
        (
            "--prompt-ids --vocabulary 100 --endpoint completions --prompt-characters 5",
            "give --prompt-tokens with --prompt-ids",
        ),
        ("--with-children", "give --pid with it"),
        ("--pid a=1 --pid a=2", "--pid has a name twice"),
        ("--concurrency 0", "argument --concurrency: '0' is not a number from 1 up"),
        ("--endpoint embeddings", "argument --endpoint: invalid choice"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: str, message: str) -> None:
    """None of two that contradict each other is silently ignored."""
    with pytest.raises(UsageError) as refused:
        options(*arguments.split())
    assert message in str(refused.value)
