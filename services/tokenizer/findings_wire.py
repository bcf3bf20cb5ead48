"""Findings of stages, to their messages."""

from __future__ import annotations

from collections.abc import Iterable

from services.tokenizer.findings import FilterAction, FilterMatch, FormatCheck, FormatFault
from streamomni.text.v1 import text_pb2

_ACTIONS = {
    FilterAction.MASK: text_pb2.FilterMatch.ACTION_MASK,
    FilterAction.STOP: text_pb2.FilterMatch.ACTION_STOP,
    FilterAction.REPORT: text_pb2.FilterMatch.ACTION_REPORT,
}
_CHECKS = {
    FormatCheck.JSON: text_pb2.FORMAT_CHECK_JSON,
    FormatCheck.CODE_BLOCKS: text_pb2.FORMAT_CHECK_CODE_BLOCKS,
}


def filter_matches(matches: Iterable[FilterMatch]) -> list[text_pb2.FilterMatch]:
    """Messages of what filters matched."""
    return [
        text_pb2.FilterMatch(action=_ACTIONS[match.action], rule=match.rule, start=match.start, length=match.length)
        for match in matches
    ]


def format_faults(faults: Iterable[FormatFault]) -> list[text_pb2.FormatFault]:
    """Messages of faults."""
    return [
        text_pb2.FormatFault(check=_CHECKS[fault.check], position=fault.position, message=fault.message)
        for fault in faults
    ]
