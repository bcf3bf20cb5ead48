"""What the stages between a choice and its reader found in the choice's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

MAX_FINDINGS = 1000
"""Most matches, and most faults, that the end of a choice tells again."""


class FilterAction(Enum):
    """What a filter's rule does with a match."""

    MASK = "mask"
    STOP = "stop"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class FilterMatch:
    """Text that a filter's rule matched.

    Attributes:
        rule: its name.
        start: characters before the match of the text that it is in: content, reasoning or a call's arguments.
        length: characters that matched.
    """

    action: FilterAction
    rule: str
    start: int
    length: int


class FormatCheck(Enum):
    """What the form of a text is checked for."""

    JSON = "json"
    CODE_BLOCKS = "code_blocks"


@dataclass(frozen=True, slots=True)
class FormatFault:
    """A place where a text breaks the form that it is checked for.

    Attributes:
        position: characters of the choice's text before it.
        message: what is wrong, on one line.
    """

    check: FormatCheck
    position: int
    message: str


@dataclass(slots=True)
class Findings:
    """All that was found in one choice so far, for its end to tell: the first `MAX_FINDINGS` of each kind."""

    filter_matches: list[FilterMatch] = field(default_factory=list)
    format_faults: list[FormatFault] = field(default_factory=list)
