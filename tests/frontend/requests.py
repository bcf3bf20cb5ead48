"""Requests that tests send, and how their answers are read."""

from __future__ import annotations

import json
from typing import Any

import httpx

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"


def chat(text: str = "one two three", **fields: Any) -> dict[str, Any]:
    """A valid chat request."""
    return {"model": "scripted", "messages": [{"role": "user", "content": text}], **fields}


def completion(prompt: Any = "one two three", **fields: Any) -> dict[str, Any]:
    """A valid completion request."""
    return {"model": "scripted", "prompt": prompt, **fields}


def events(body: str) -> list[Any]:
    """The events of a stream: parsed JSON, and `[DONE]` as it is. Comments are passed over."""
    blocks = [block for block in body.split("\n\n") if block and not block.startswith(":")]
    assert all(block.startswith("data: ") for block in blocks), body
    datas = [block.removeprefix("data: ") for block in blocks]
    return [item if item == "[DONE]" else json.loads(item) for item in datas]


def texts(chunks: list[Any], index: int = 0) -> str:
    """The text that a stream's chunks give for one choice."""
    choices = [choice for chunk in chunks if chunk != "[DONE]" for choice in chunk["choices"]]
    return "".join(
        choice["delta"].get("content", "") if "delta" in choice else choice["text"]
        for choice in choices
        if choice["index"] == index
    )


def error_of(response: httpx.Response) -> dict[str, Any]:
    """The error object of a response, after checking its shape."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"] and "\n" not in error["message"]
    assert error["code"] is None or isinstance(error["code"], str)
    return error
