"""What filters and format checks found in an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

FilterAction = Literal["mask", "stop", "report"]
FormatCheck = Literal["json", "code_blocks"]


@dataclass(frozen=True, slots=True)
class FilterMatch:
    """Text that a filter's rule matched: `length` characters after `start` of the text that it is in."""

    action: FilterAction
    rule: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class FormatFault:
    """A place where the text breaks the form that it is checked for; `position`: characters before it."""

    check: FormatCheck
    position: int
    message: str


def finding_objects(matches: Sequence[FilterMatch], faults: Sequence[FormatFault]) -> dict[str, Any]:
    """The members of a choice that tell findings; none where nothing was found. They are no part of OpenAI's shapes."""
    members: dict[str, Any] = {}
    if matches:
        members["filter_matches"] = [
            {"action": match.action, "rule": match.rule, "start": match.start, "length": match.length}
            for match in matches
        ]
    if faults:
        members["format_faults"] = [
            {"check": fault.check, "position": fault.position, "message": fault.message} for fault in faults
        ]
    return members
