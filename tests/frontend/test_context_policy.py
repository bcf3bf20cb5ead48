"""The field `context_policy` and the member `context`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.chassis.errors import InvalidRequest
from services.frontend.chat_request import parse_chat_request
from services.frontend.context_policy import CONTEXT_POLICIES, ContextReport, context_object
from services.frontend.wire import CallInfo, generate_requests
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, events

KIND = chat_pb2.ContextPolicy


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (None, None),
        ("error", KIND.KIND_ERROR),
        ("sliding_window", KIND.KIND_SLIDING_WINDOW),
        ("summarize", KIND.KIND_SUMMARIZE),
    ],
)
async def test_policies_reach_the_text_service(
    frontend: Frontend, service: ScriptedTextService, policy: str | None, kind: int | None
) -> None:
    """Each as its own kind; absent or null stays unset."""
    assert (await frontend.client.post(CHAT, json=chat(context_policy=policy))).status_code == 200
    sent = service.requests[-1].chat
    assert sent.HasField("context_policy") == (policy is not None)
    assert kind is None or sent.context_policy.kind == kind


@pytest.mark.parametrize("value", ["truncate", "", 1, True, {}, ["summarize"], {"kind": "summarize", "summary": "x"}])
async def test_other_values_are_refused(frontend: Frontend, value: object) -> None:
    """The error names the field and all that is allowed."""
    response = await frontend.client.post(CHAT, json=chat(context_policy=value))
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["type"]) == (400, "context_policy", "invalid_request_error")
    assert "context_policy must be one of error, sliding_window, summarize, but it is" in error["message"]


async def test_completions_have_no_policy(frontend: Frontend) -> None:
    """A prompt of /v1/completions has no turns: the field is refused there by name, but for what asks for nothing."""
    response = await frontend.client.post(COMPLETIONS, json=completion(context_policy="sliding_window"))
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, "context_policy")
    assert "is for /v1/chat/completions only" in error["message"]
    assert (await frontend.client.post(COMPLETIONS, json=completion(context_policy="error"))).status_code == 200


def test_a_summary_is_never_the_callers() -> None:
    """No field of a request sets the summary; the service's own goes along with the policy."""
    body = chat(context_policy="summarize", context_summary="x", summary="y")
    request = parse_chat_request(body)
    assert request.context_summary == ""
    own = replace(request, context_summary="They met.")
    (sent,) = generate_requests(own, CallInfo("r-1"))
    assert sent.message.chat.context_policy == KIND(kind=KIND.KIND_SUMMARIZE, summary="They met.")
    with pytest.raises(InvalidRequest):
        parse_chat_request(chat(context_policy="other"))


REPORT = text_pb2.ContextReport(
    policy=KIND.KIND_SUMMARIZE,
    dropped_messages=4,
    dropped_tokens=321,
    summary='They met in "Nantes".',
    summary_usage=sampling_pb2.Usage(prompt_tokens=300, completion_tokens=9),
    unsummarized_messages=1,
)
TOLD = {
    "policy": "summarize",
    "dropped_messages": 4,
    "dropped_tokens": 321,
    "summary": 'They met in "Nantes".',
    "summary_usage": {"prompt_tokens": 300, "completion_tokens": 9, "total_tokens": 309},
    "unsummarized_messages": 1,
}


@pytest.mark.parametrize("options", [{}, {"include_usage": True}, {"continuous_usage_stats": True}])
async def test_a_report_is_told_once(frontend: Frontend, service: ScriptedTextService, options: dict[str, Any]) -> None:
    """Whole bodies have it as `context`; a stream in its first chunk, with several choices too, and nowhere else."""

    async def cut(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        event = started(request)
        event.context.CopyFrom(REPORT)
        yield event
        for index in range(2):
            yield text_pb2.Delta(index=index, token_ids=[1], text="Yes.")
            yield finished(1, index)

    service.script = cut
    body = (await frontend.client.post(CHAT, json=chat(n=2, context_policy="summarize"))).json()
    assert body["context"] == TOLD
    streamed = await frontend.client.post(
        CHAT, json=chat(n=2, context_policy="summarize", stream=True, stream_options=options)
    )
    first, *rest = [orjson.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
    assert first["context"] == TOLD
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert list(first)[:4] == ["id", "object", "created", "model"]
    assert not any("context" in chunk for chunk in rest)
    assert len(events(streamed.text)) > 4


def test_only_what_there_is_to_tell() -> None:
    """A window has no summary, and counts that are nought are left out."""
    assert context_object(ContextReport("sliding_window", 2, 90)) == {
        "policy": "sliding_window",
        "dropped_messages": 2,
        "dropped_tokens": 90,
    }
    assert CONTEXT_POLICIES == ("error", "sliding_window", "summarize")


async def test_the_description_lists_the_policies(frontend: Frontend) -> None:
    """/openapi.json names the field and its values for chats alone."""
    schemas = (await frontend.client.get("/openapi.json")).json()["components"]["schemas"]
    assert schemas["ChatRequest"]["properties"]["context_policy"]["enum"] == [*CONTEXT_POLICIES, None]
    assert "context_policy" not in schemas["CompletionRequest"]["properties"]
