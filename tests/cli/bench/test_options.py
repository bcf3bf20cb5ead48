"""Values of the options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import pytest

from services.cli.bench.options import (
    Lengths,
    Processes,
    SharedPrefix,
    above_zero,
    extra_body,
    goodput,
    lengths,
    processes,
    share,
    shared_prefix,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (lengths, "64", Lengths(64, 64)),
        (lengths, "64-256", Lengths(64, 256)),
        (share, "0", 0.0),
        (share, "0.25", 0.25),
        (share, "1", 1.0),
        (above_zero, "0.5", 0.5),
        (shared_prefix, "512", SharedPrefix(512, 1.0)),
        (shared_prefix, "512/0.8", SharedPrefix(512, 0.8)),
        (goodput, "ttft_ms=200,itl_ms=50.5", {"ttft_ms": 200.0, "itl_ms": 50.5}),
        (processes, "frontend=4711", Processes("frontend", (4711,))),
        (processes, "all=1,2,3", Processes("all", (1, 2, 3))),
        (extra_body, '{"temperature": 0, "stop": ["x"]}', {"temperature": 0, "stop": ["x"]}),
    ],
)
def test_value_is_parsed(parse: Callable[[str], Any], text: str, value: Any) -> None:
    """Each value has one written form."""
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "texts", "hint"),
    [
        (lengths, ["", "0", "5-4", "-5", "5-", "1.5", "٣"], "a range such as 64-256"),
        (share, ["", "-0.1", "1.1", "nan", "x"], "a number from 0 to 1"),
        (above_zero, ["", "0", "-1", "inf", "nan"], "a number above 0"),
        (shared_prefix, ["", "0", "x/0.5"], "TOKENS/SHARE, such as 512/0.8"),
        (shared_prefix, ["5/", "5/2"], "a number from 0 to 1"),
        (goodput, ["", "ttft=5", "ttft_ms=1,ttft_ms=2"], "give ttft_ms, itl_ms, tpot_ms, e2e_ms, each once"),
        (goodput, ["ttft_ms", "ttft_ms=x", "itl_ms=0"], "a number above 0"),
        (processes, ["", "4711", "=1", "x=", "x=1,", "x=a", "x=0"], "NAME=PID,PID…, such as frontend=4711"),
        (extra_body, ["", "[]", "{", "1"], "is no JSON object"),
        (
            extra_body,
            ['{"stream": false}', '{"max_tokens": 4}', '{"model": "x"}'],
            "is set by the command's own options",
        ),
    ],
)
def test_wrong_value_says_what_is_allowed(parse: Callable[[str], Any], texts: list[str], hint: str) -> None:
    """The error names the form that the value must have."""
    for text in texts:
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            parse(text)
        assert hint in str(refused.value), text


@pytest.mark.parametrize(("value", "text"), [(Lengths(64, 64), "64"), (Lengths(64, 256), "64-256")])
def test_lengths_are_shown_as_they_are_given(value: Lengths, text: str) -> None:
    """The report repeats the command line's form."""
    assert str(value) == text
