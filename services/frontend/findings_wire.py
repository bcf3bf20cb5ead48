"""Findings of filters and format checks, from their messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.frontend.findings import FilterAction, FilterMatch, FormatCheck, FormatFault
from streamomni.text.v1 import text_pb2

_ACTIONS: dict[int, FilterAction] = {
    text_pb2.FilterMatch.ACTION_MASK: "mask",
    text_pb2.FilterMatch.ACTION_STOP: "stop",
    text_pb2.FilterMatch.ACTION_REPORT: "report",
}
_CHECKS: dict[text_pb2.FormatCheck.ValueType, FormatCheck] = {
    text_pb2.FORMAT_CHECK_JSON: "json",
    text_pb2.FORMAT_CHECK_CODE_BLOCKS: "code_blocks",
}


def format_checks(checks: Iterable[FormatCheck]) -> Sequence[text_pb2.FormatCheck.ValueType]:
    """Messages of checks that are asked for."""
    return tuple(number for number, check in _CHECKS.items() if check in checks)


def filter_matches(messages: Iterable[text_pb2.FilterMatch]) -> Sequence[FilterMatch]:
    """Read matches. One of an action that is unknown here did something to the text, so it counts as a mask."""
    return tuple(
        FilterMatch(_ACTIONS.get(message.action, "mask"), message.rule, message.start, message.length)
        for message in messages
    )


def format_faults(messages: Iterable[text_pb2.FormatFault]) -> Sequence[FormatFault]:
    """Read faults; those of a check that is unknown here cannot have been asked for and are passed over."""
    return tuple(
        FormatFault(_CHECKS[message.check], message.position, message.message)
        for message in messages
        if message.check in _CHECKS
    )
