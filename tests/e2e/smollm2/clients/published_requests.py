"""Requests whose answers together show everything that OpenAI publishes a shape of."""

from __future__ import annotations

from typing import Any

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"

_MESSAGES: dict[str, Any] = {"messages": [{"role": "user", "content": "Name a city: 🦙"}], "temperature": 0}
_PROMPT: dict[str, Any] = {"prompt": "The days of the week are 🦙", "temperature": 0}
_SHORT = {"max_tokens": 6}
_STREAM: dict[str, Any] = {"stream": True}
_USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
_PLACE = {
    "type": "object",
    "properties": {"name": {"type": "string", "enum": ["Paris", "Berlin"]}},
    "required": ["name"],
    "additionalProperties": False,
}
_TOOL = {"type": "function", "function": {"name": "go_to", "description": "Go there.", "parameters": _PLACE}}
_TOOLS: dict[str, Any] = {"tools": [_TOOL], "max_tokens": 60}
_NAMED = {"type": "function", "function": {"name": "go_to"}}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "place", "schema": _PLACE, "strict": True}}

_CHATS: dict[str, dict[str, Any]] = {
    "chat": _SHORT,
    "chat cut off": {"max_tokens": 1},
    "chat ended by a stop string": {"max_tokens": 20, "stop": ["a", "e", "o", "🦙"]},
    "chat with n": {**_SHORT, "n": 2, "temperature": 1, "seed": 1},
    "chat with logprobs": {**_SHORT, "logprobs": True, "top_logprobs": 2},
    "chat with a schema": {"max_tokens": 30, "response_format": _FORMAT},
    "chat with a required tool": {**_TOOLS, "tool_choice": "required"},
    "chat with a named tool": {**_TOOLS, "tool_choice": _NAMED},
}
_COMPLETIONS: dict[str, dict[str, Any]] = {
    "completion": _SHORT,
    "completion ended by a stop string": {"max_tokens": 20, "stop": ["a", "e", "o", "🦙"]},
    "completion with n": {**_SHORT, "n": 2, "temperature": 1, "seed": 1},
    "completion with logprobs": {**_SHORT, "logprobs": 2},
    "completion with echo and logprobs": {**_SHORT, "logprobs": 1, "echo": True},
    "completion of a list": {**_SHORT, "prompt": ["One, two,", "A, B,"]},
}

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"{name}{told}": (path, {**prompt, **body, **more})
        for path, prompt, requests in ((CHAT, _MESSAGES, _CHATS), (COMPLETIONS, _PROMPT, _COMPLETIONS))
        for name, body in requests.items()
        for told, more in {"": {}, ", streamed": _STREAM, ", streamed with usage": _USAGE}.items()
    },
}

# Status, method, path and body.
WRONG: dict[str, tuple[int, str, str, dict[str, Any]]] = {
    "wrong value": (400, "POST", CHAT, {**_MESSAGES, "temperature": -1}),
    "wrong value of a completion, streamed": (400, "POST", COMPLETIONS, {**_PROMPT, "n": 0, "stream": True}),
    "missing field": (400, "POST", CHAT, {}),
    "unknown model": (404, "POST", CHAT, {**_MESSAGES, "model": "gpt-unknown"}),
    "too long": (400, "POST", COMPLETIONS, {"prompt": "word " * 9000}),
    "wrong method": (405, "PUT", CHAT, _MESSAGES),
    "unknown path": (404, "POST", "/v1/nothing", {}),
    "unknown model asked for": (404, "GET", "/v1/models/gpt-unknown", {}),
}
