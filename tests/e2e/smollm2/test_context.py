"""Conversations that are too long, on the running service."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import grpc
import httpx
import pytest

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.e2e.service import Service, wait_until

CONTEXT = 8192
LIMIT = 300
ANSWER = "Yes, I see."
HEADING = "Summary of the earlier part of this conversation:\n"
# vLLM's blocks of the prefix cache, on a CPU.
BLOCK = 128
KIND = chat_pb2.ContextPolicy


def talk(turns: int, words: str = "The boat sails on past the harbour of") -> list[dict[str, str]]:
    """A system message, so many turns of some 50 tokens, and a last question."""
    messages = [{"role": "system", "content": "Answer briefly."}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Day {turn}. {words} town {turn}, and the sea is calm there."})
        messages.append({"role": "assistant", "content": ANSWER})
    return [*messages, {"role": "user", "content": "Where are we now?"}]


def fields(service: Service, policy: str, messages: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    """A request whose prompt may have 300 tokens and whose answer is forced, so that it is short."""
    return {
        "model": service.model,
        "messages": messages,
        "context_policy": policy,
        "temperature": 0,
        "max_tokens": CONTEXT - LIMIT,
        "structured_outputs": {"choice": [ANSWER]},
        **more,
    }


def ask(service: Service, policy: str, messages: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    """A whole answer."""
    url = f"{service.url}/v1/chat/completions"
    response = httpx.post(url, json=fields(service, policy, messages, **more), timeout=60)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def chat_prompt(messages: list[dict[str, str]], **more: Any) -> chat_pb2.ChatPrompt:
    """The same messages for the text service."""
    sent = [chat_pb2.ChatMessage(role=one["role"], text=one["content"]) for one in messages]
    return chat_pb2.ChatPrompt(messages=sent, **more)


def rendered_tokens(service: Service, messages: list[dict[str, str]]) -> int:
    """Number of tokens of the prompt that the messages become."""
    with grpc.insecure_channel(service.tokenizer) as channel:
        request = text_pb2.RenderChatRequest(chat=chat_prompt(messages))
        return len(text_pb2_grpc.TextServiceStub(channel).RenderChat(request).token_ids)


def test_without_a_policy_it_is_refused(service: Service) -> None:
    """By default and by name: an error with both figures, before anything is sent."""
    messages = talk(250)
    tokens = rendered_tokens(service, messages)
    for policy in (None, "error"):
        body = fields(service, "error", messages, max_tokens=8, stream=True) | {"context_policy": policy}
        response = httpx.post(f"{service.url}/v1/chat/completions", json=body, timeout=60)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
        assert f"{tokens} tokens" in error["message"] and f"{CONTEXT} tokens" in error["message"]


def test_a_window_whole_and_streamed(service: Service) -> None:
    """The oldest turns are left out until the prompt fits, token by token as the service renders it; whole body and
    first chunk tell so."""
    messages = talk(12)
    answer = ask(service, "sliding_window", messages)
    told = answer["context"]
    kept = [messages[0], *messages[1 + told["dropped_messages"] :]]
    prompt_tokens = answer["usage"]["prompt_tokens"]
    assert LIMIT // 2 < prompt_tokens == rendered_tokens(service, kept) <= LIMIT
    assert told["dropped_tokens"] == rendered_tokens(service, messages) - prompt_tokens
    assert kept[1]["role"] == "user"
    assert answer["choices"][0]["message"]["content"] == ANSWER
    body = fields(service, "sliding_window", messages, stream=True)
    streamed = httpx.post(f"{service.url}/v1/chat/completions", json=body, timeout=60).text
    chunks = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    assert [chunk.get("context") for chunk in chunks] == [told, *[None] * (len(chunks) - 1)]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == ANSWER
    lines = [line for line in service.log() if line.get("event") == "conversation cut to fit"]
    assert {line["dropped_messages"] for line in lines[-2:]} == {told["dropped_messages"]}


def test_cached_tokens_grow_from_turn_to_turn(service: Service) -> None:
    """A caller that sends its whole history each time finds each prompt in vLLM's cache up to its newest turn: before
    anything is left out, and for several turns after each time that more is."""
    words = "This is the log of a long voyage. The boat sails on past the harbour of"
    prompts, cached, dropped = list[int](), list[int](), list[int]()
    for turn in range(13, 20):
        answer = ask(service, "sliding_window", talk(turn, words), max_tokens=CONTEXT - 800)
        prompts.append(answer["usage"]["prompt_tokens"])
        cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
        dropped.append(answer.get("context", {"dropped_messages": 0})["dropped_messages"])
    figures = list(zip(prompts, cached, dropped, strict=True))
    assert dropped[2] == 0 < dropped[-1], figures
    stable = [turn for turn in range(1, len(prompts)) if dropped[turn] == dropped[turn - 1]]
    assert len(stable) >= 5, figures
    for turn in stable:
        # The last question of each prompt is not part of the next, and blocks are found whole.
        assert cached[turn] >= (prompts[turn - 1] - 16) // BLOCK * BLOCK, figures
    after = [cached[turn] for turn in stable if dropped[turn]]
    assert len(after) >= 3 and max(after) > after[0] > BLOCK, figures


def test_a_summary_is_written_told_and_used(service: Service) -> None:
    """The model writes it, the response tells it with what it took, it is part of the answer's prompt, and handed back
    it is part of the next prompt while only the messages after it are sent."""
    messages = talk(8)
    answer = ask(service, "summarize", messages)
    told = answer["context"]
    assert told["policy"] == "summarize" and told["dropped_messages"] > 0
    summary = told["summary"]
    assert len(summary) > 10
    assert 0 < told["summary_usage"]["completion_tokens"] <= LIMIT // 8
    with_summary = {"role": "system", "content": f"Answer briefly.\n\n{HEADING}{summary}"}
    kept = messages[1 + told["dropped_messages"] :]
    assert answer["usage"]["prompt_tokens"] == rendered_tokens(service, [with_summary, *kept]) <= LIMIT
    policy = KIND(kind=KIND.KIND_SUMMARIZE, summary=summary)
    following = [*kept, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "And tomorrow?"}]
    request = text_pb2.GenerateRequest(
        model=service.model,
        chat=chat_prompt([messages[0], *following], context_policy=policy),
        sampling_params=sampling_pb2.SamplingParams(temperature=0, max_tokens=2),
    )
    with grpc.insecure_channel(service.tokenizer) as channel:
        first, *_ = text_pb2_grpc.TextServiceStub(channel).Generate(request, timeout=60)
    assert first.started.prompt_tokens == rendered_tokens(service, [with_summary, *following])
    assert not first.started.HasField("context")


@pytest.mark.parametrize("way", ["http", "rpc"])
def test_leaving_while_a_summary_is_written(service: Service, way: str) -> None:
    """Within a second of the caller's leaving vLLM has stopped, and no answer begins."""
    wait_until(service.is_idle, 30, "vLLM is not idle before the test")
    # Room for a summary of 100 tokens, which takes some seconds.
    messages = talk(24, f"A {way} log. The boat sails on past the harbour of")
    before, written = len(service.log()), service.engine_metric("vllm:generation_tokens_total")

    def writes() -> bool:
        return service.engine_metric("vllm:generation_tokens_total") > written + 2

    if way == "http":
        address = urlsplit(service.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        body = json.dumps(fields(service, "summarize", messages, max_tokens=CONTEXT - 800, stream=True))
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        wait_until(writes, 20, "nothing is written")
        connection.close()
    else:
        request = text_pb2.GenerateRequest(
            model=service.model,
            chat=chat_prompt(messages, context_policy=KIND(kind=KIND.KIND_SUMMARIZE)),
            sampling_params=sampling_pb2.SamplingParams(temperature=0, max_tokens=CONTEXT - 800),
        )
        with grpc.insecure_channel(service.tokenizer) as channel:
            call = text_pb2_grpc.TextServiceStub(channel).Generate(request)
            wait_until(writes, 20, "nothing is written")
            call.cancel()
    wait_until(service.is_idle, 1, f"{way}: vLLM is not idle")
    wait_until(
        lambda: any(line.get("outcome") == "cancelled" for line in service.log()[before:]), 2, "no word of the cancel"
    )
    assert not any(line.get("event") == "conversation cut to fit" for line in service.log()[before:])
