"""Requests that are wrong, one for each kind of wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.e2e.differential.requests import CHAT, COMPLETIONS

VOCABULARY = 49152
CONTEXT = 8192
MESSAGES = [{"role": "user", "content": "Hi"}]

# Beside a valid chat and a valid completion.
FIELDS: dict[str, Sequence[Any]] = {
    "temperature": (-1, 2.5, "hot"),
    "top_p": (0, 1.1, -1),
    "top_k": (-2, 1.5),
    "min_p": (-0.1, 1.1),
    "presence_penalty": (-2.1, 2.1),
    "frequency_penalty": (-2.1, 2.1),
    "repetition_penalty": (0, -1, 2.5),
    "seed": (2**65, 1.5, "x"),
    "max_tokens": (-1, "10", 2**63, CONTEXT * 2),
    "min_tokens": (-1, 20),
    "n": (0, -1),
    "best_of": (1_000_000,),
    "stop": ("", [""], ["a", "b", "c", "d", "e"], 5, [None], "\ud800"),
    "stop_token_ids": ([-1], [VOCABULARY], "2"),
    "logit_bias": ({str(VOCABULARY): 1}, {"-1": 1}, {"x": 1}, {"5": 101}, [1]),
    "allowed_token_ids": ([], [VOCABULARY], [-1]),
    "stream": ("yes",),
    "stream_options": ({"include_usage": True},),
    "ignore_eos": ("perhaps",),
    "priority": (7,),
    "cache_salt": ("salt",),
    "prompt_embeds": ("AAAA",),
    "kv_transfer_params": ({"do_remote_decode": True},),
    "user": (5,),
    "structured_outputs": ({"json": {"type": "nothing"}}, {"regex": "["}, {"choice": []}, {"json": 5}),
    "response_format": ({"type": "yaml"}, {"type": "json_schema"}, "json"),
}
ONLY_CHAT: dict[str, Sequence[Any]] = {
    "messages": (
        [],
        "Hi",
        [{"role": "root", "content": "Hi"}],
        [{"content": "Hi"}],
        [{"role": "user", "content": None}],
        [{"role": "user"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/x.png"}}]}],
        [{"role": "user", "content": [{"type": "unknown"}]}],
        [{"role": "user", "content": []}],
        [{"role": "tool", "content": "4", "tool_call_id": "nobody"}],
        ["Hi"],
    ),
    "max_tokens": (0,),
    "max_completion_tokens": (0, -1),
    "top_logprobs": (2, 21, -1),
    "logprobs": (5,),
    "continue_final_message": (True,),
    "chat_template": ("{{ messages }}",),
    "chat_template_kwargs": ({"chat_template": "x"}, 5),
    "reasoning_effort": ("",),
    "tool_choice": ("required", {"type": "function", "function": {"name": "nobody"}}),
    "tools": ("calculator", [{"type": "function"}], []),
}
ONLY_COMPLETION: dict[str, Sequence[Any]] = {
    "prompt": ([], "", [[]], [VOCABULARY], [-1], [1.5], 5, {"a": 1}, list(range(200, 200 + CONTEXT)), [True], [1, "a"]),
    "logprobs": (-1, 21),
    "echo": ("yes",),
    "suffix": ("the end",),
}


@dataclass(frozen=True)
class BadRequest:
    """A wrong request by a name that stays the same; `parameter` is None where the request as a whole is wrong."""

    name: str
    path: str
    content: bytes
    parameter: str | None = None
    method: str = "POST"


@dataclass(frozen=True)
class Outcome:
    """The status of an answer, and whether its body is OpenAI's error object."""

    status: int
    has_error_object: bool

    def __str__(self) -> str:
        if self.status < 400:
            return "served"
        return f"{self.status}" if self.has_error_object else f"{self.status} without an error object"


def bad_requests(model: str) -> list[BadRequest]:
    """Return all wrong requests for a model."""
    return [*_fields(model), *_bodies(model), *_models()]


def outcomes(url: str, requests: Sequence[BadRequest]) -> dict[str, Outcome]:
    """Send all requests one after the other; the outcomes by the requests' names."""
    with httpx.Client(base_url=url, timeout=60, headers={"Content-Type": "application/json"}) as client:
        return {each.name: _outcome(client.request(each.method, each.path, content=each.content)) for each in requests}


def _outcome(response: httpx.Response) -> Outcome:
    try:
        error = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        return Outcome(response.status_code, False)
    return Outcome(response.status_code, isinstance(error, dict) and {"message", "type", "param", "code"} <= set(error))


def _fields(model: str) -> Iterator[BadRequest]:
    for path, only in ((CHAT, ONLY_CHAT), (COMPLETIONS, ONLY_COMPLETION)):
        kind, prompt = ("chat", {"messages": MESSAGES}) if path == CHAT else ("completion", {"prompt": "Hi"})
        for fields in (FIELDS, only):
            for name, values in fields.items():
                for value in values:
                    body = {"model": model, **prompt, "max_tokens": 10, name: value}
                    content = json.dumps(body).encode()
                    text = json.dumps(value)
                    told = text if len(text) <= 50 else f"{text[:40]}… ({len(text)})"
                    yield BadRequest(f"{kind} {name} {told}", path, content, name)


def _bodies(model: str) -> Iterator[BadRequest]:
    good = {"model": model, "messages": MESSAGES, "max_tokens": 2}
    start = json.dumps(good)[:-1].encode()
    bodies = {
        "empty body": b"",
        "truncated body": start,
        "body that is a list": b"[]",
        "body nested 10,000 deep": start + b', "user": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        "body with NaN": start + b', "temperature": NaN}',
        "body with Infinity": start + b', "temperature": Infinity}',
        "body with a duplicate key": start + b', "max_tokens": 3}',
        "body with invalid UTF-8": start + b', "user": "\xff"}',
        "messages with an unpaired surrogate": json.dumps(
            {**good, "messages": [{"role": "user", "content": "\ud800"}]}
        ).encode(),
    }
    for name, content in bodies.items():
        yield BadRequest(name, CHAT, content)
    yield BadRequest("wrong method", CHAT, b"", method="GET")
    yield BadRequest("unknown path", "/v1/nothing", b"{}")
    yield BadRequest("missing messages", CHAT, json.dumps({"model": model}).encode(), "messages")
    yield BadRequest("missing prompt", COMPLETIONS, json.dumps({"model": model}).encode(), "prompt")


def _models() -> Iterator[BadRequest]:
    for value in ("gpt-unknown", "../../x", "http://127.0.0.1:9/x", "", 5):
        body = {"model": value, "messages": MESSAGES, "max_tokens": 2}
        yield BadRequest(f"model {json.dumps(value)}", CHAT, json.dumps(body).encode(), "model")
    body = {"messages": MESSAGES, "max_tokens": 2}
    yield BadRequest("missing model", CHAT, json.dumps(body).encode(), "model")
