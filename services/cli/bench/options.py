"""What a run is asked to do, and how that is written on the command line."""

from __future__ import annotations

import argparse
import json
import math
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENDPOINTS = ("chat", "completions")
# What a request must stay within to count as good: times in milliseconds.
TARGETS = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms")
# What the generator itself decides in each request.
OWN_FIELDS = ("max_tokens", "messages", "model", "prompt", "stream", "stream_options")


@dataclass(frozen=True, slots=True)
class Lengths:
    """A length, or a range of them with both ends in it."""

    least: int
    most: int

    def __str__(self) -> str:
        return str(self.least) if self.least == self.most else f"{self.least}-{self.most}"


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The same beginning for many prompts.

    Args:
        tokens: its length, which comes on top of the prompt's own.
        share: how many of the prompts have it, 0 to 1.
    """

    tokens: int
    share: float


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes whose CPU time is added up under one name."""

    name: str
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """A whole run.

    Args:
        url: the server's, with or without `/v1`.
        model: None for the first that the server lists.
        endpoint: one of ENDPOINTS.
        concurrency: requests under way at a time; None when arrivals are by `request_rate` or `trace`.
        request_rate: arrivals a second.
        burstiness: shape of the arrivals' gamma distribution: 1 is a Poisson process; less is in bursts, more is even.
        requests: how many; None for as many as fit in `duration_s`.
        duration_s: when to stop; what runs then is cut off.
        trace: a file that says what to send and when.
        prompt_tokens: of each prompt. About, as its text is made of words; exact with `vocabulary`.
        prompt_characters: exact length of the text, in place of `prompt_tokens`.
        vocabulary: prompts are random token ids below this number; None for text.
        output_tokens: sent as `max_tokens`.
        cancel_share: how many requests are left after a random number of chunks, 0 to 1.
        extra_body: more fields of each request.
        goodput: limits by the names in TARGETS.
        trusted: the authorities behind the server's certificate; None: the system's.
        timeout_s: most time of one request.
        warmup: requests that are sent before and not counted.
    """

    url: str
    model: str | None
    endpoint: str
    concurrency: int | None
    request_rate: float | None
    burstiness: float
    requests: int | None
    duration_s: float | None
    trace: Path | None
    prompt_tokens: Lengths
    prompt_characters: Lengths | None
    vocabulary: int | None
    output_tokens: Lengths
    shared_prefix: SharedPrefix | None
    cancel_share: float
    extra_body: Mapping[str, Any]
    goodput: Mapping[str, float]
    processes: Sequence[Processes]
    with_children: bool
    api_key: str | None
    trusted: ssl.SSLContext | None
    warmup: int
    timeout_s: float
    seed: int

    @property
    def choices(self) -> int:
        """How many answers each request asks for."""
        n = self.extra_body.get("n", 1)
        return n if isinstance(n, int) else 1


def lengths(text: str) -> Lengths:
    """Parse `N` or `N-M`."""
    least, separator, most = text.partition("-")
    numbers = (least, most if separator else least)
    if not all(number.isascii() and number.isdigit() for number in numbers) or not 1 <= int(least) <= int(numbers[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no length; give a number from 1 up, or a range such as 64-256")
    return Lengths(int(least), int(numbers[1]))


def share(text: str) -> float:
    """Parse a number from 0 to 1."""
    number = _number(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share; give a number from 0 to 1")
    return number


def above_zero(text: str) -> float:
    """Parse a number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def shared_prefix(text: str) -> SharedPrefix:
    """Parse `TOKENS` or `TOKENS/SHARE`."""
    tokens, separator, of_all = text.partition("/")
    if not tokens.isascii() or not tokens.isdigit() or int(tokens) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not TOKENS/SHARE, such as 512/0.8")
    return SharedPrefix(int(tokens), share(of_all) if separator else 1.0)


def goodput(text: str) -> Mapping[str, float]:
    """Parse `NAME=MILLISECONDS,…`."""
    targets: dict[str, float] = {}
    for part in text.split(","):
        name, _, limit = part.partition("=")
        if name not in TARGETS or name in targets:
            raise argparse.ArgumentTypeError(f"{part!r} is no target; give {', '.join(TARGETS)}, each once, as NAME=MS")
        targets[name] = above_zero(limit)
    return targets


def processes(text: str) -> Processes:
    """Parse `NAME=PID,…`."""
    name, separator, pids = text.partition("=")
    parts = pids.split(",")
    if not name or not separator or not all(pid.isascii() and pid.isdigit() and int(pid) for pid in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PID,PID…, such as frontend=4711")
    return Processes(name, tuple(int(pid) for pid in parts))


def extra_body(text: str) -> Mapping[str, Any]:
    """Parse a JSON object of request fields."""
    try:
        fields = json.loads(text)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise argparse.ArgumentTypeError(f'{text!r} is no JSON object, such as {{"temperature": 0}}')
    if own := sorted(fields.keys() & set(OWN_FIELDS)):
        raise argparse.ArgumentTypeError(
            f"{own[0]} is set by the command's own options; leave it out of the extra body"
        )
    return fields


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
