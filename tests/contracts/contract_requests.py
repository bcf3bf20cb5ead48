"""Requests that the contract makes of an engine."""

from __future__ import annotations

import random

from services.engine.port import Sampling

END_TOKEN, SECOND_END_TOKEN = 2, 5
PLACES = 64
GREEDY = Sampling(temperature=0.0, max_tokens=12, ignore_eos=True)
SEEDED = Sampling(temperature=1.0, max_tokens=8, ignore_eos=True, seed=11)
ENDLESS = Sampling(temperature=0.0, ignore_eos=True)


def prompt(number: int, length: int = 20) -> list[int]:
    """A prompt of its own for each number."""
    return random.Random(number).choices(range(100, 49152), k=length)


def changed(sampling: Sampling, **changes: object) -> Sampling:
    """A copy with some fields changed."""
    fields = {name: getattr(sampling, name) for name in Sampling.__slots__}
    return Sampling(**{**fields, **changes})
