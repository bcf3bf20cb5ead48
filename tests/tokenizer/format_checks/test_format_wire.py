"""Format checks, as a request's message asks for them."""

from __future__ import annotations

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.format_checks.format_wire import format_stages
from streamomni.text.v1 import text_pb2

JSON = text_pb2.FORMAT_CHECK_JSON


def test_none() -> None:
    """Where nothing is asked for there is no stage, and so no cost."""
    assert format_stages(text_pb2.GenerateRequest()) == ()


def test_some() -> None:
    """All checks of a choice are one stage."""
    checks = [JSON, text_pb2.FORMAT_CHECK_CODE_BLOCKS, JSON]
    assert len(format_stages(text_pb2.GenerateRequest(format_checks=checks, stop_at_format_fault=True))) == 1


@pytest.mark.parametrize(
    ("request_", "param", "told"),
    [
        (text_pb2.GenerateRequest(format_checks=[JSON, text_pb2.FORMAT_CHECK_UNSPECIFIED]), "format_checks", "check 0"),
        (text_pb2.GenerateRequest.FromString(b"\x92\x01\x01\x09"), "format_checks", "allowed are FORMAT_CHECK_JSON"),
        (text_pb2.GenerateRequest(stop_at_format_fault=True), "stop_at_format_fault", "needs format_checks"),
    ],
)
def test_wrong(request_: text_pb2.GenerateRequest, param: str, told: str) -> None:
    """A check that is unset or unknown, and a stop at the faults of none, are refused by name."""
    with pytest.raises(InvalidRequest, match=told) as refusal:
        format_stages(request_)
    assert refusal.value.param == param
