"""The answers' shapes, whole and streamed, for both endpoints."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from openai import AsyncOpenAI

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, events, texts

USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 3,
    "total_tokens": 6,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 0},
}


async def stream(frontend: Frontend, path: str, request: dict[str, Any]) -> list[Any]:
    """Send a request and return the events of its stream, `[DONE]` left out but checked."""
    response = await frontend.client.post(path, json=request | {"stream": True})
    assert response.status_code == 200, response.text
    chunks = events(response.text)
    assert chunks.pop() == "[DONE]"
    return chunks


async def test_chat_completion(frontend: Frontend) -> None:
    """A whole chat answer has exactly OpenAI's shape."""
    body = (await frontend.client.post(CHAT, json=chat())).json()
    assert body.pop("id").startswith("chatcmpl-")
    assert abs(body.pop("created") - time.time()) < 10
    assert body == {
        "object": "chat.completion",
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "one two three ", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }


async def test_chat_chunks(frontend: Frontend) -> None:
    """A chat stream: the role, the text, one finish reason; all chunks of one id."""
    chunks = await stream(frontend, CHAT, chat())
    assert {chunk["id"] for chunk in chunks} == {chunks[0]["id"]}
    assert chunks[0]["id"].startswith("chatcmpl-")
    for chunk in chunks:
        assert set(chunk) == {"id", "object", "created", "model", "choices"}
        assert (chunk["object"], chunk["model"]) == ("chat.completion.chunk", "scripted")
    assert [chunk["choices"] for chunk in chunks] == [
        [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "one "}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "two "}, "finish_reason": None}],
        [{"index": 0, "delta": {"content": "three "}, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    ]


async def test_stream_headers(frontend: Frontend) -> None:
    """A stream's headers keep caches and proxies from holding it back."""
    headers = (await frontend.client.post(CHAT, json=chat(stream=True))).headers
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"


async def test_text_completion(frontend: Frontend) -> None:
    """A whole completion has exactly OpenAI's shape."""
    body = (await frontend.client.post(COMPLETIONS, json=completion())).json()
    assert body.pop("id").startswith("cmpl-")
    assert abs(body.pop("created") - time.time()) < 10
    assert body == {
        "object": "text_completion",
        "model": "scripted",
        "choices": [{"index": 0, "text": "one two three ", "logprobs": None, "finish_reason": "stop"}],
        "usage": USAGE,
    }


async def test_completion_chunks(frontend: Frontend) -> None:
    """A completion's stream has text in each chunk and one finish reason."""
    chunks = await stream(frontend, COMPLETIONS, completion())
    assert {chunk["object"] for chunk in chunks} == {"text_completion"}
    assert [chunk["choices"] for chunk in chunks] == [
        [{"index": 0, "text": "one ", "logprobs": None, "finish_reason": None}],
        [{"index": 0, "text": "two ", "logprobs": None, "finish_reason": None}],
        [{"index": 0, "text": "three ", "logprobs": None, "finish_reason": None}],
        [{"index": 0, "text": "", "logprobs": None, "finish_reason": "stop"}],
    ]


@pytest.mark.parametrize(("path", "request_of"), [(CHAT, chat), (COMPLETIONS, completion)])
async def test_streamed_text_equals_whole_text(frontend: Frontend, path: str, request_of: Any) -> None:
    """The deltas put together are the whole answer, whatever characters it has."""
    request = request_of('a "quoted" \\ 🦙 \u2028 </script> \x7f ﷽ 👩‍👩‍👧 \ufffd tab\there')
    whole = (await frontend.client.post(path, json=request)).json()
    choice = whole["choices"][0]
    text = choice["message"]["content"] if path == CHAT else choice["text"]
    assert "🦙" in text
    assert texts(await stream(frontend, path, request)) == text


@pytest.mark.parametrize(("path", "request_of"), [(CHAT, chat), (COMPLETIONS, completion)])
async def test_usage_of_a_stream(frontend: Frontend, path: str, request_of: Any) -> None:
    """With include_usage one last chunk without choices has the usage, and null stands in all others."""
    chunks = await stream(frontend, path, request_of(stream_options={"include_usage": True}))
    assert [chunk["usage"] for chunk in chunks] == [None] * (len(chunks) - 1) + [USAGE]
    assert chunks[-1]["choices"] == []
    assert all(len(chunk["choices"]) == 1 for chunk in chunks[:-1])


async def test_continuous_usage(frontend: Frontend) -> None:
    """With continuous_usage_stats each chunk has the usage so far, and the last is the final one."""
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = await stream(frontend, CHAT, chat(stream_options=options))
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [0, 1, 2, 3, 3, 3]
    assert chunks[-1]["usage"] == USAGE


async def test_several_choices(frontend: Frontend) -> None:
    """Each of n choices has its role, its text and one finish reason; the prompt counts once."""
    whole = (await frontend.client.post(CHAT, json=chat(n=3))).json()
    assert [choice["index"] for choice in whole["choices"]] == [0, 1, 2]
    assert {choice["message"]["content"] for choice in whole["choices"]} == {"one two three "}
    assert whole["usage"]["prompt_tokens"] == 3
    assert whole["usage"]["completion_tokens"] == 9

    chunks = await stream(frontend, CHAT, chat(n=3, stream_options={"include_usage": True}))
    assert chunks[-1]["usage"] == whole["usage"]
    for index in range(3):
        own = [chunk["choices"][0] for chunk in chunks[:-1] if chunk["choices"][0]["index"] == index]
        assert own[0]["delta"] == {"role": "assistant", "content": ""}
        assert texts(chunks, index) == "one two three "
        assert [choice["finish_reason"] for choice in own if choice["finish_reason"]] == ["stop"]


@pytest.mark.parametrize(
    ("reason", "matched", "expected"),
    [
        (sampling_pb2.FINISH_REASON_STOP, {}, {"finish_reason": "stop"}),
        (sampling_pb2.FINISH_REASON_STOP, {"stop_string": "END"}, {"finish_reason": "stop", "stop_reason": "END"}),
        (sampling_pb2.FINISH_REASON_STOP, {"stop_token_id": 0}, {"finish_reason": "stop", "stop_reason": 0}),
        (sampling_pb2.FINISH_REASON_LENGTH, {}, {"finish_reason": "length"}),
        (sampling_pb2.FINISH_REASON_CONTENT_FILTER, {}, {"finish_reason": "content_filter"}),
        (sampling_pb2.FINISH_REASON_TOOL_CALLS, {}, {"finish_reason": "tool_calls"}),
    ],
)
async def test_finish_reasons(
    frontend: Frontend, service: ScriptedTextService, reason: Any, matched: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Each finish reason, and the stop that was matched, is told, streaming or not."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        yield finished(0, reason=reason, **matched)

    service.script = script
    whole = (await frontend.client.post(CHAT, json=chat())).json()["choices"][0]
    last = (await stream(frontend, CHAT, chat()))[-1]["choices"][0]
    for choice in (whole, last):
        assert {key: choice[key] for key in ("finish_reason", "stop_reason") if key in choice} == expected


async def test_held_back_text_gives_no_event(frontend: Frontend, service: ScriptedTextService) -> None:
    """Tokens whose text comes later give no empty chunk, but count."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        for _ in range(5):
            yield text_pb2.Delta(token_ids=[1, 2])
        yield text_pb2.Delta(token_ids=[3], text="all")
        yield finished(11)

    service.script = script
    options = {"continuous_usage_stats": True}
    chunks = await stream(frontend, CHAT, chat(stream_options=options))
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks] == ["", "all", None]
    assert chunks[1]["usage"]["completion_tokens"] == 11


async def test_reasoning(frontend: Frontend, service: ScriptedTextService) -> None:
    """Reasoning is told under both of its names, beside the content."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        yield text_pb2.Delta(token_ids=[1], reasoning="because ")
        yield text_pb2.Delta(token_ids=[2], reasoning="so", text="yes")
        yield finished(2)

    service.script = script
    message = (await frontend.client.post(CHAT, json=chat())).json()["choices"][0]["message"]
    assert (message["reasoning"], message["reasoning_content"], message["content"]) == ("because so",) * 2 + ("yes",)
    deltas = [chunk["choices"][0]["delta"] for chunk in await stream(frontend, CHAT, chat())]
    assert [delta.get("reasoning") for delta in deltas] == [None, "because ", "so", None, None]
    assert [delta.get("content") for delta in deltas] == ["", None, None, "yes", None]


async def test_parallel_streams_do_not_mix(frontend: Frontend) -> None:
    """64 streams at once each get their own text."""
    prompts = [" ".join(f"{number}-{word}" for word in range(20)) for number in range(64)]
    answers = await asyncio.gather(*(stream(frontend, CHAT, chat(prompt)) for prompt in prompts))
    assert [texts(answer).strip() for answer in answers] == prompts


async def test_openai_client(frontend: Frontend) -> None:
    """The official client reads whole and streamed answers, models, and errors as its own types."""
    async with AsyncOpenAI(base_url=f"{frontend.url}/v1", api_key="none") as client:
        messages: Any = [{"role": "user", "content": "one two three"}]
        whole = await client.chat.completions.create(model="scripted", messages=messages)
        assert whole.choices[0].message.content == "one two three "
        streamed = await client.chat.completions.create(
            model="scripted", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in streamed]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two three "
        assert chunks[-1].usage == whole.usage
        done = await client.completions.create(model="scripted", prompt="four five")
        assert done.choices[0].text == "four five "
        assert [model.id async for model in client.models.list()] == ["scripted"]
        assert (await client.models.retrieve("scripted")).owned_by == "stream-omni"
