"""The command line's own rules: one line for each error, and values that options share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol


class UsageError(Exception):
    """The command line, a setting or the machine does not allow what was asked. The text is one line; exit code 2."""


class CommandError(Exception):
    """A command could not do its work. The text is one line; exit code 1."""


class Parser(argparse.ArgumentParser):
    """argparse, but an error is one line without the usage before it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError in place of printing and exiting."""
        raise UsageError(f"{message}; {self.prog} --help shows what there is")


class Commands(Protocol):
    """Where a command adds its own parser."""

    def add_parser(self, name: str, *, help: str, description: str) -> Parser:
        """Add a command."""


def port(text: str) -> int:
    """Parse a port number, 1 to 65535."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 1 to 65535")
    return int(text)


def positive(text: str) -> int:
    """Parse a whole number from 1 up."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 up")
    return int(text)


def engine_arg(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE. VALUE is JSON if it parses as such, else it stands for itself; NAME is spelt as vLLM does."""
    name, separator, value = text.partition("=")
    name = name.lstrip("-").replace("-", "_")
    if not separator or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, such as max-model-len=4096")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def engine_args(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    """Join what `engine_arg` parsed.

    Raises:
        UsageError: a name is given twice.
    """
    joined: dict[str, Any] = {}
    for name, value in pairs:
        if name in joined:
            raise UsageError(f"--engine-arg {name} is given twice; give it once")
        joined[name] = value
    return joined
