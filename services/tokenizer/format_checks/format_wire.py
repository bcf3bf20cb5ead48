"""What a request's message asks its text's form to be checked for."""

from __future__ import annotations

from collections.abc import Sequence

from services.chassis.errors import InvalidRequest
from services.tokenizer.findings import FormatCheck
from services.tokenizer.format_checks.format_stage import format_stage
from services.tokenizer.output_stage import NewStage
from streamomni.text.v1 import text_pb2

_CHECKS = {
    text_pb2.FORMAT_CHECK_JSON: FormatCheck.JSON,
    text_pb2.FORMAT_CHECK_CODE_BLOCKS: FormatCheck.CODE_BLOCKS,
}


def format_stages(request: text_pb2.GenerateRequest) -> Sequence[NewStage]:
    """Return the stage that checks, or none. A check that is named twice is made once.

    Raises:
        InvalidRequest: a check is unknown, or there is none to stop at.
    """
    checks: dict[FormatCheck, None] = {}
    for asked in request.format_checks:
        check = _CHECKS.get(asked)
        if check is None:
            known = ", ".join(text_pb2.FormatCheck.Name(number) for number in _CHECKS)
            raise InvalidRequest(f"format check {asked} is unknown; allowed are {known}", param="format_checks")
        checks[check] = None
    if checks:
        return (format_stage(tuple(checks), request.stop_at_format_fault),)
    if request.stop_at_format_fault:
        raise InvalidRequest(
            "stop_at_format_fault needs format_checks; set them, or leave it out", param="stop_at_format_fault"
        )
    return ()
