"""Values on the command line."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from services.cli.arguments import Parser, UsageError, engine_arg, engine_args, port, positive


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("max-model-len=4096", "max_model_len", 4096),
        ("max_model_len=4096", "max_model_len", 4096),
        ("--dtype=bfloat16", "dtype", "bfloat16"),
        ("enforce-eager=true", "enforce_eager", True),
        ('compilation-config={"level": 0}', "compilation_config", {"level": 0}),
        ("revision=", "revision", ""),
        ("hf-token=a=b", "hf_token", "a=b"),
    ],
)
def test_engine_arg_is_json_or_text(text: str, name: str, value: Any) -> None:
    """Names are spelt as vLLM's Python names; a value that is no JSON stands for itself."""
    assert engine_arg(text) == (name, value)


@pytest.mark.parametrize("text", ["dtype", "=4", "max model=4", "4=4", ""])
def test_engine_arg_without_a_name_is_refused(text: str) -> None:
    """The error shows what the form is."""
    with pytest.raises(argparse.ArgumentTypeError, match=r"NAME=VALUE, such as max-model-len=4096"):
        engine_arg(text)


def test_engine_arg_given_twice_is_refused() -> None:
    """Of two values none is dropped silently, however the name is spelt."""
    assert engine_args([("dtype", "half"), ("seed", 1)]) == {"dtype": "half", "seed": 1}
    with pytest.raises(UsageError, match="--engine-arg dtype is given twice"):
        engine_args([engine_arg("dtype=half"), engine_arg("--dtype=float32")])


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "8000.0", "²", ""])
def test_port_outside_the_range_is_refused(text: str) -> None:
    """Ports go from 1 to 65535; port 0 would be one that nobody knows."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not a port; give a number from 1 to 65535"):
        port(text)
    assert (port("1"), port("65535")) == (1, 65535)


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5"])
def test_count_begins_with_one(text: str) -> None:
    """Counts are whole numbers from 1 up."""
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number from 1 up"):
        positive(text)
    assert positive("12") == 12


def test_wrong_option_is_one_line() -> None:
    """The parser raises one line that names the fault and the help, and prints nothing."""
    parser = Parser(prog="x")
    parser.add_argument("--temperature")
    with pytest.raises(UsageError, match=r"^unrecognized arguments: --temp 1; x --help shows what there is$"):
        parser.parse_args(["--temp", "1"])
