"""Format checks over HTTP, before a scripted text service."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, started
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of, events

JSON, BLOCKS = text_pb2.FORMAT_CHECK_JSON, text_pb2.FORMAT_CHECK_CODE_BLOCKS
FAULT = text_pb2.FormatFault(check=BLOCKS, position=7, message="')' closes nothing")
TOLD = [{"check": "code_blocks", "position": 7, "message": "')' closes nothing"}]


async def faulty(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say two words, the second with a fault, and end for it."""
    yield started(request)
    yield text_pb2.Delta(token_ids=[1], text="one")
    yield text_pb2.Delta(token_ids=[2], text=" two", format_faults=[FAULT])
    reason = sampling_pb2.FINISH_REASON_CONTENT_FILTER
    usage = sampling_pb2.Usage(prompt_tokens=1, completion_tokens=2)
    yield text_pb2.Finished(reason=reason, usage=usage, format_faults=[FAULT])


@pytest.mark.parametrize(("path", "body"), [(CHAT, chat), (COMPLETIONS, completion)])
async def test_asked_and_told(frontend: Frontend, service: ScriptedTextService, path: str, body: Any) -> None:
    """Checks reach the text service; its faults are told in the chunk of their text and in the closing one, and in the
    whole answer's choice."""
    service.script = faulty
    asked = {"format_checks": ["code_blocks", "json"], "stop_on_format_fault": True}
    whole = (await frontend.client.post(path, json=body(**asked))).json()
    (choice,) = whole["choices"]
    assert (choice["finish_reason"], choice["format_faults"]) == ("content_filter", TOLD)
    streamed = events((await frontend.client.post(path, json=body(**asked, stream=True))).text)
    choices = [chunk["choices"][0] for chunk in streamed[:-1]]
    assert [each["finish_reason"] for each in choices if "format_faults" in each] == [None, "content_filter"]
    assert all(each["format_faults"] == TOLD for each in choices if "format_faults" in each)
    for request in service.requests:
        assert (list(request.format_checks), request.stop_at_format_fault) == ([JSON, BLOCKS], True)


async def test_nothing_asked(frontend: Frontend, service: ScriptedTextService) -> None:
    """Without checks none are asked for, and no answer tells of faults."""
    response = await frontend.client.post(CHAT, json=chat(format_checks=[], stop_on_format_fault=False))
    assert "format_faults" not in response.text
    (request,) = service.requests
    assert (list(request.format_checks), request.stop_at_format_fault) == ([], False)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"format_checks": "json"}, "format_checks"),
        ({"format_checks": ["xml"]}, "format_checks"),
        ({"format_checks": [["json"]]}, "format_checks"),
        ({"format_checks": ["json"] * 5}, "format_checks"),
        ({"stop_on_format_fault": 1}, "stop_on_format_fault"),
        ({"stop_on_format_fault": True}, "stop_on_format_fault"),
        ({"stop_on_format_fault": True, "format_checks": []}, "stop_on_format_fault"),
    ],
)
async def test_wrong_fields(frontend: Frontend, service: ScriptedTextService, fields: Any, param: str) -> None:
    """An unknown check, and a stop without one, are 400 by name."""
    for path, body in ((CHAT, chat(**fields)), (COMPLETIONS, completion(**fields))):
        response = await frontend.client.post(path, json=body)
        assert (response.status_code, error_of(response)["param"]) == (400, param)
    assert service.requests == []
