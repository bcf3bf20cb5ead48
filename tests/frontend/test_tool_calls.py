"""Tool calls in answers, streamed and not, as OpenAI's clients read them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, chat, events

TOOLS = [{"type": "function", "function": {"name": "add"}}, {"type": "function", "function": {"name": "sub"}}]
CALLS = sampling_pb2.FINISH_REASON_TOOL_CALLS
Piece = chat_pb2.ToolCallDelta


async def two_calls(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Two calls in pieces, the second's start in the first's last delta."""
    yield started(request)
    yield text_pb2.Delta(token_ids=[1], tool_calls=[Piece(index=0, id="c0", name="add", arguments_json="")])
    yield text_pb2.Delta(token_ids=[2, 3], tool_calls=[Piece(index=0, arguments_json='{"a": ')])
    yield text_pb2.Delta(
        token_ids=[4],
        tool_calls=[
            Piece(index=0, arguments_json="1}"),
            Piece(index=1, id="c1", name="sub", arguments_json="{}"),
        ],
    )
    yield finished(4, reason=CALLS)


async def said_before(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Reasoning, content and a call in one delta."""
    yield started(request)
    call = Piece(index=0, id="c0", name="add", arguments_json="{}")
    yield text_pb2.Delta(token_ids=[1], reasoning="hm", text="I add.", tool_calls=[call])
    yield finished(1, reason=CALLS)


async def choices_of(frontend: Frontend, **fields: Any) -> list[dict[str, Any]]:
    """The choices of a stream's chunks."""
    body = chat(tools=TOOLS, stream=True, **fields)
    chunks = events((await frontend.client.post(CHAT, json=body)).text)
    assert chunks.pop() == "[DONE]"
    return [choice for chunk in chunks for choice in chunk["choices"]]


async def test_streamed_calls(frontend: Frontend, service: ScriptedTextService) -> None:
    """Index in each piece; id, type and name once; pieces of arguments; then finish_reason tool_calls."""
    service.script = two_calls
    choices = await choices_of(frontend)
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {
            "tool_calls": [
                {"index": 0, "id": "c0", "type": "function", "function": {"name": "add", "arguments": ""}},
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": '}}]},
        {
            "tool_calls": [
                {"index": 0, "function": {"arguments": "1}"}},
                {"index": 1, "id": "c1", "type": "function", "function": {"name": "sub", "arguments": "{}"}},
            ]
        },
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None] * 4 + ["tool_calls"]


async def test_whole_calls(frontend: Frontend, service: ScriptedTextService) -> None:
    """The message holds the calls whole; where nothing is said, its content is null."""
    service.script = two_calls
    (choice,) = (await frontend.client.post(CHAT, json=chat(tools=TOOLS))).json()["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {"id": "c0", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
            {"id": "c1", "type": "function", "function": {"name": "sub", "arguments": "{}"}},
        ],
    }


async def test_what_is_said_before_a_call(frontend: Frontend, service: ScriptedTextService) -> None:
    """Reasoning under both names, then content, then the call, streamed as in the whole."""
    service.script = said_before
    choices = await choices_of(frontend)
    assert [sorted(choice["delta"]) for choice in choices[1:4]] == [
        ["reasoning", "reasoning_content"],
        ["content"],
        ["tool_calls"],
    ]
    (choice,) = (await frontend.client.post(CHAT, json=chat(tools=TOOLS))).json()["choices"]
    message = choice["message"]
    assert (message["content"], message["reasoning"], message["reasoning_content"]) == ("I add.", "hm", "hm")
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["add"]


async def test_log_probabilities_of_calls(frontend: Frontend, service: ScriptedTextService) -> None:
    """The tokens of a call have their log probabilities, once, streamed as in the whole."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        numbers = sampling_pb2.Logprobs(logprobs=[-0.5, -0.25], ranks=[1, 1])
        logprobs = text_pb2.TextLogprobs(logprobs=numbers, token_bytes=[b"a", b"b"], text_offsets=[0, 1])
        call = Piece(index=0, id="c0", name="add", arguments_json="{}")
        yield text_pb2.Delta(token_ids=[1, 2], tool_calls=[call], logprobs=logprobs)
        yield finished(2, reason=CALLS)

    service.script = script
    (whole,) = (await frontend.client.post(CHAT, json=chat(tools=TOOLS, logprobs=True))).json()["choices"]
    streamed = [
        token
        for choice in await choices_of(frontend, logprobs=True)
        for token in (choice.get("logprobs") or {}).get("content", [])
    ]
    assert [(token["token"], token["logprob"]) for token in streamed] == [("a", -0.5), ("b", -0.25)]
    assert whole["logprobs"]["content"] == streamed
