"""Log probabilities and the echoed prompt on the real model: chat and completions, streamed and not."""

from __future__ import annotations

import itertools
import json
from typing import Any

import grpc
import httpx
import pytest
from openai import OpenAI

from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.e2e.service import Service

MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
CHAT: dict[str, Any] = {"messages": MESSAGES, "temperature": 0, "max_tokens": 20, "logprobs": True, "top_logprobs": 3}
# The llama is three tokens, of which one is a whole space and a part of it.
PROMPT = "The 🦙 and the sea"
COMPLETION: dict[str, Any] = {"prompt": PROMPT, "temperature": 0, "max_tokens": 12, "logprobs": 3}
# Of one and the same token in batches of different sizes.
TOLERANCE = 1e-3


def post(service: Service, path: str, **body: Any) -> dict[str, Any]:
    """The answer in one piece."""
    response = httpx.post(f"{service.url}/v1/{path}", json={"model": service.model, **body}, timeout=120)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def chunks(service: Service, path: str, **body: Any) -> list[dict[str, Any]]:
    """The first choice of each chunk of the streamed answer."""
    body |= {"model": service.model, "stream": True}
    with httpx.stream("POST", f"{service.url}/v1/{path}", json=body, timeout=120) as response:
        events = [line[6:] for line in response.iter_lines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    return [choice for event in events for choice in json.loads(event)["choices"]]


def of_engine(service: Service, text: text_pb2.TokenizeRequest, **sampling: Any) -> tuple[list[int], list[Any]]:
    """Prompt ids, and the engine's own events for them."""
    with grpc.insecure_channel(service.tokenizer) as channel:
        prompt = list(text_pb2_grpc.TextServiceStub(channel).Tokenize(text).token_ids)
    params = sampling_pb2.SamplingParams(temperature=0, **sampling)
    request = engine_pb2.GenerateRequest(prompt_token_ids=prompt, sampling_params=params)
    with grpc.insecure_channel(service.engine) as channel:
        return prompt, list(engine_pb2_grpc.EngineServiceStub(channel).Generate(request))


def token_text(service: Service, token_ids: list[int]) -> list[str]:
    """Each token by itself, special ones by name."""
    with grpc.insecure_channel(service.tokenizer) as channel:
        stub = text_pb2_grpc.TextServiceStub(channel)
        requests = [text_pb2.DetokenizeRequest(token_ids=[one], skip_special_tokens=False) for one in token_ids]
        return [stub.Detokenize(request).text for request in requests]


def test_chat(service: Service) -> None:
    """A chat's tokens have their own bytes, the greedy one is the most likely, and together they are the
    text and the end token; the stream tells the same, each in the chunk of its text."""
    choice = post(service, "chat/completions", **CHAT)["choices"][0]
    content = choice["logprobs"]["content"]
    assert "".join(token["token"] for token in content) == choice["message"]["content"] + "<|im_end|>"
    for token in content:
        assert bytes(token["bytes"]).decode() == token["token"]
        assert [len(token["top_logprobs"]), token["top_logprobs"][0]["token"]] == [3, token["token"]]
        assert token["top_logprobs"][0]["logprob"] == token["logprob"] <= 0
        assert all(one["logprob"] >= two["logprob"] for one, two in itertools.pairwise(token["top_logprobs"]))
    streamed = chunks(service, "chat/completions", **CHAT)
    told = [chunk for chunk in streamed if chunk.get("logprobs")]
    for chunk in told[:-1]:
        assert "".join(token["token"] for token in chunk["logprobs"]["content"]) == chunk["delta"]["content"]
    same_tokens([token for chunk in told for token in chunk["logprobs"]["content"]], content)


def same_tokens(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """The same tokens and alternatives, and numbers that are as good as the same."""
    assert [token["bytes"] for token in some] == [token["bytes"] for token in others]
    for one, other in zip(some, others, strict=True):
        assert one["logprob"] == pytest.approx(other["logprob"], abs=TOLERANCE)
        assert [top["bytes"] for top in one["top_logprobs"]] == [top["bytes"] for top in other["top_logprobs"]]


def test_chat_without_alternatives(service: Service) -> None:
    """Without top_logprobs each token is told alone, and without logprobs nothing is."""
    body = CHAT | {"top_logprobs": None, "max_tokens": 3}
    content = post(service, "chat/completions", **body)["choices"][0]["logprobs"]["content"]
    assert [token["top_logprobs"] for token in content] == [[], [], []]
    body = CHAT | {"top_logprobs": None, "logprobs": False, "max_tokens": 3}
    assert post(service, "chat/completions", **body)["choices"][0]["logprobs"] is None


def test_completion_is_the_engines(service: Service) -> None:
    """A completion's tokens, numbers and alternatives are those that the engine itself tells."""
    told = post(service, "completions", **COMPLETION)["choices"][0]["logprobs"]
    _, events = of_engine(service, text_pb2.TokenizeRequest(text=PROMPT), max_tokens=12, logprobs=3)
    token_ids = [one for event in events for one in event.delta.token_ids]
    numbers = [one for event in events for one in event.delta.logprobs.logprobs]
    tops = [one for event in events for one in event.delta.logprobs.top_token_ids]
    assert told["tokens"] == token_text(service, token_ids)
    assert told["token_logprobs"] == pytest.approx(numbers, abs=TOLERANCE)
    for position, top in enumerate(told["top_logprobs"]):
        assert list(top) == list(dict.fromkeys(token_text(service, tops[3 * position : 3 * position + 3])))


def test_echo_with_logprobs(service: Service) -> None:
    """The prompt comes first with its tokens' numbers, the first of them null; offsets count characters of the
    text, also around a split one; the stream tells the same."""
    body = COMPLETION | {"echo": True}
    choice = post(service, "completions", **body)["choices"][0]
    told = choice["logprobs"]
    prompt, events = of_engine(service, text_pb2.TokenizeRequest(text=PROMPT), max_tokens=1, prompt_logprobs=3)
    (started,) = [event.started for event in events if event.HasField("started")]
    count = len(prompt)
    assert choice["text"].startswith(PROMPT) and len(choice["text"]) > len(PROMPT)
    assert (told["token_logprobs"][0], told["top_logprobs"][0]) == (None, None)
    assert told["token_logprobs"][1:count] == pytest.approx(list(started.prompt_logprobs.logprobs), abs=TOLERANCE)
    assert told["tokens"][:count] == token_text(service, prompt)
    lengths = {len(told[name]) for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")}
    assert lengths == {count + 12}
    for token, offset in zip(told["tokens"], told["text_offset"], strict=True):
        whole = token.replace("\ufffd", "")
        assert choice["text"][offset : offset + len(whole)] == whole
    streamed = chunks(service, "completions", **body)
    assert streamed[0]["text"] == PROMPT
    assert "".join(chunk["text"] for chunk in streamed) == choice["text"]
    for name in ("tokens", "text_offset"):
        assert [one for chunk in streamed if chunk["logprobs"] for one in chunk["logprobs"][name]] == told[name]


@pytest.mark.parametrize("prompt", ["Hello 😀 world", [504, 3575, 282, 4649]])
def test_the_prompt_alone(service: Service, prompt: Any) -> None:
    """`max_tokens` 0 with echo gives the prompt and its log probabilities, and nothing is generated."""
    answer = post(service, "completions", prompt=prompt, max_tokens=0, echo=True, logprobs=1)
    (choice,) = answer["choices"]
    assert choice["text"] == ("Hello 😀 world" if isinstance(prompt, str) else "The capital of France")
    assert choice["finish_reason"] == "length"
    assert len(choice["logprobs"]["tokens"]) == answer["usage"]["prompt_tokens"]
    assert answer["usage"]["completion_tokens"] == 0
    streamed = chunks(service, "completions", prompt=prompt, max_tokens=0, echo=True)
    assert [chunk["text"] for chunk in streamed] == [choice["text"], ""]


def test_logprobs_end_with_the_stop_string(service: Service) -> None:
    """Where a stop string ends the text, tokens told, ids counted and usage agree."""
    answer = post(service, "chat/completions", **CHAT, stop=["capital of Fr"])
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "The "
    tokens = [token["token"] for token in choice["logprobs"]["content"]]
    assert tokens == ["The", " capital", " of", " France"]
    assert answer["usage"]["completion_tokens"] == len(tokens)


def test_openais_client_reads_them(service: Service) -> None:
    """OpenAI's own client finds the numbers where it looks for them, on both endpoints."""
    client = OpenAI(base_url=f"{service.url}/v1", api_key="none")
    chat = client.chat.completions.create(
        model=service.model, messages=[{"role": "user", "content": "Hi"}], logprobs=True, top_logprobs=2, max_tokens=2
    )
    assert chat.choices[0].logprobs is not None and chat.choices[0].logprobs.content is not None
    assert len(chat.choices[0].logprobs.content) == 2
    completion = client.completions.create(model=service.model, prompt="Hi", logprobs=2, max_tokens=2)
    assert completion.choices[0].logprobs is not None
    assert len(completion.choices[0].logprobs.tokens or []) == 2


def test_suffix_is_refused_by_name(service: Service) -> None:
    """This model has no tokens to fill in the middle with, and says so."""
    body = {"model": service.model, "prompt": "def f(x):\n", "suffix": "\n    return y"}
    response = httpx.post(f"{service.url}/v1/completions", json=body, timeout=30)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "suffix"
