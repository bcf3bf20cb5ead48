"""Generations that fail: before the first byte, within a stream, and when their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from services.chassis.errors import InvalidRequest, Loading, NotFound
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, started
from tests.frontend.conftest import Frontend, Starter
from tests.frontend.requests import CHAT, chat, error_of, events, texts


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotFound("no such model", param="model", reason="MODEL_NOT_FOUND"), 404, "model_not_found"),
        (NotFound("no such model", param="model"), 404, "model_not_found"),
        (InvalidRequest("too long", reason="CONTEXT_LENGTH_EXCEEDED"), 400, "context_length_exceeded"),
        (Loading("being loaded"), 503, "loading"),
    ],
)
async def test_refusals_of_the_tiers_behind(
    frontend: Frontend, service: ScriptedTextService, error: Exception, status: int, code: str, streamed: bool
) -> None:
    """A refusal of the tiers behind is a proper error response, also where a stream was asked for."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in list[Event]():
            yield event
        raise error

    service.script = script
    response = await frontend.client.post(CHAT, json=chat(stream=streamed))
    assert response.status_code == status
    assert error_of(response)["code"] == code
    assert ("retry-after" in response.headers) == (status == 503)


async def test_failure_within_a_stream(frontend: Frontend, service: ScriptedTextService) -> None:
    """After ten tokens a failure is one error event: no finish reason, no [DONE]; a whole answer is an error."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        for token_id in range(10):
            yield text_pb2.Delta(token_ids=[token_id], text=f"{token_id} ")
        raise Loading("the engine is being started again", reason="ENGINE_FAILED")

    service.script = script
    response = await frontend.client.post(CHAT, json=chat(stream=True))
    assert response.status_code == 200
    *chunks, last = events(response.text)
    assert texts(chunks) == "0 1 2 3 4 5 6 7 8 9 "
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * 11
    assert last == {
        "error": {
            "message": "the engine is being started again",
            "type": "server_error",
            "param": None,
            "code": "engine_failed",
        }
    }
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 503


async def test_time_limit(start: Starter, service: ScriptedTextService) -> None:
    """A generation that takes longer than allowed ends with 504, is cancelled, and knew of its limit."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        await asyncio.Event().wait()

    service.script = script
    frontend = await start(request_timeout_s=0.3)
    response = await frontend.client.post(CHAT, json=chat(), headers={"x-request-id": "late"})
    assert response.status_code == 504
    assert response.headers["x-should-retry"] == "false"
    assert error_of(response)["code"] == "deadline_exceeded"
    assert (
        events((await frontend.client.post(CHAT, json=chat(stream=True))).text)[-1]["error"]["type"] == "server_error"
    )
    await asyncio.sleep(0.1)
    assert "late" in service.cancelled
    assert service.live == 0
    assert {request.deadline_ms for request in service.requests} == {300}
