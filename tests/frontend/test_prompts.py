"""Several prompts in one request: a generation each behind the frontend, one answer before it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from services.chassis.errors import InvalidRequest
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, echo, prompt_text, started
from tests.frontend.conftest import Frontend, until
from tests.frontend.requests import COMPLETIONS, completion, error_of, events, texts

PROMPTS = ["one two", "three", "four five six"]


async def test_choices_are_numbered_by_prompt(frontend: Frontend, service: ScriptedTextService) -> None:
    """Choice i * n + j is choice j of prompt i; usage counts each prompt once and all completions."""
    body = (await frontend.client.post(COMPLETIONS, json=completion(PROMPTS, n=2))).json()
    assert [(choice["index"], choice["text"]) for choice in body["choices"]] == [
        (2 * number + choice, f"{prompt} ") for number, prompt in enumerate(PROMPTS) for choice in range(2)
    ]
    assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (9, 12)
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 3}
    assert sorted(request.text.text for request in service.requests) == sorted(PROMPTS)
    assert {request.n for request in service.requests} == {2}


async def test_streamed(frontend: Frontend) -> None:
    """Streamed, each choice has its text and one end; usage grows to that of the whole."""
    options = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    response = await frontend.client.post(COMPLETIONS, json=completion(PROMPTS, n=2) | options)
    chunks = events(response.text)
    assert chunks.pop() == "[DONE]"
    assert [texts(chunks, index) for index in range(6)] == [f"{prompt} " for prompt in PROMPTS for _ in range(2)]
    ends = [choice["index"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert sorted(ends) == [0, 1, 2, 3, 4, 5]
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    assert counts == sorted(counts)
    assert chunks[-1]["usage"] == chunks[-2]["usage"]
    assert (chunks[-1]["usage"]["prompt_tokens"], counts[-1]) == (9, 12)


async def test_echo_belongs_to_its_prompt(frontend: Frontend, service: ScriptedTextService) -> None:
    """Each choice begins with its own prompt, whole and streamed."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        async for event in echo(request):
            if isinstance(event, text_pb2.Started):
                event.prompt_text = f"<{prompt_text(request)}>"
            yield event

    service.script = script
    expected = [f"<{prompt}>{prompt} " for prompt in PROMPTS for _ in range(2)]
    body = (await frontend.client.post(COMPLETIONS, json=completion(PROMPTS, n=2, echo=True))).json()
    assert [choice["text"] for choice in body["choices"]] == expected
    chunks = events(
        (await frontend.client.post(COMPLETIONS, json=completion(PROMPTS, n=2, echo=True, stream=True))).text
    )
    assert [texts(chunks[:-1], index) for index in range(6)] == expected


@pytest.mark.parametrize("prompt", [[[1, 2], [3]], [[7]], [1, 2, 3]])
async def test_lists_of_token_ids(frontend: Frontend, service: ScriptedTextService, prompt: Any) -> None:
    """Ids arrive as they were sent, and a list of ids is one prompt."""
    body = (await frontend.client.post(COMPLETIONS, json=completion(prompt))).json()
    sent = sorted(list(request.tokens.token_ids) for request in service.requests)
    assert sent == (prompt if isinstance(prompt[0], list) else [prompt])
    assert len(body["choices"]) == len(sent)


@pytest.mark.parametrize("stream", [False, True])
async def test_one_failing_prompt_fails_the_whole(
    frontend: Frontend, service: ScriptedTextService, stream: bool
) -> None:
    """The error is the answer, and the other generations are cancelled."""

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        if request.text.text == "bad":
            await asyncio.sleep(0.05)
            raise InvalidRequest("the prompt is bad; send a good one", param="prompt")
        yield started(request)
        await asyncio.Event().wait()

    service.script = script
    response = await frontend.client.post(COMPLETIONS, json=completion(["good", "bad", "good"], stream=stream))
    assert response.status_code == 400
    assert error_of(response)["param"] == "prompt"
    await until(lambda: service.live == 0, seconds=1)
    assert len(service.cancelled) == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_leaving_cancels_all(frontend: Frontend, service: ScriptedTextService, stream: bool) -> None:
    """When the caller leaves, each of its generations is cancelled within a second."""

    async def silent(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        await asyncio.Event().wait()

    service.script = silent
    async with httpx.AsyncClient(base_url=frontend.url) as client:
        asking = asyncio.create_task(client.post(COMPLETIONS, json=completion(PROMPTS, stream=stream), timeout=60))
        await until(lambda: service.live == 3)
        asking.cancel()
    await until(lambda: len(service.cancelled) == 3, seconds=1)
    assert service.live == 0


async def test_suffix_goes_with_each_prompt(frontend: Frontend, service: ScriptedTextService) -> None:
    """The text after the gap arrives beside the text before it; without one it stays unset."""
    await frontend.client.post(COMPLETIONS, json=completion(["a", "b"], suffix="end"))
    assert [request.text.suffix for request in service.requests] == ["end", "end"]
    await frontend.client.post(COMPLETIONS, json=completion("a"))
    assert not service.requests[-1].text.HasField("suffix")


@pytest.mark.parametrize("fields", [{"best_of": 1}, {"n": 3, "best_of": 3}, {"best_of": None}])
async def test_best_of_equal_to_n_asks_for_nothing(frontend: Frontend, fields: dict[str, Any]) -> None:
    """Choosing the best n of n is no choice."""
    assert (await frontend.client.post(COMPLETIONS, json=completion(**fields))).status_code == 200
