"""What a supervisor has to know of a tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Probe(Protocol):
    """Knows when a tier serves."""

    async def until_ready(self) -> None:
        """Return once the tier serves; wait as long as it takes."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One process of the service.

    Args:
        name: for progress lines, logs and errors.
        argv: its command line; the first part is the program's path.
        env: its whole environment.
        probe: knows when it serves.
        drain_seconds: the time that it takes at most to end what runs when it is told to.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    probe: Probe
    drain_seconds: float
