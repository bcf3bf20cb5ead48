"""Requests with tools and with reasoning, for both servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.differential.requests import CHAT, Case


def _tool(name: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, **more, "parameters": schema}}


WEATHER = _tool("get_weather", {"city": {"type": "string", "enum": ["Paris", "Berlin"]}}, description="Tells it.")
TIME = _tool("get_time", {"zone": {"type": "string", "enum": ["UTC", "CET"]}, "seconds": {"type": "boolean"}})
STOP = {"type": "function", "function": {"name": "stop", "description": "Stops, günstig."}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 25 degrees."}

_PARIS = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
_BERLIN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Berlin"}}\n</tool_call>'
# What a small model is told to repeat, as it calls nothing by itself.
_COPIED = {
    "a call": _PARIS,
    "a call after words": f"Let me see.\n{_PARIS}",
    "two calls": f"{_PARIS}\n{_BERLIN}",
    "a call that is cut off": _PARIS[:40],
    "a call that is no JSON": '<tool_call>\n{"name": "get_weather", "arguments": {"city": Paris}}\n</tool_call>',
    "a call of an unknown tool": '<tool_call>\n{"name": "get_rain", "arguments": {}}\n</tool_call>',
}

# With the tiny model's tokenizer: the closing tag, and tokens of plain text to reach it by.
THINK_END = 16
_REASONED = [THINK_END, *range(300, 330)]


def tool_cases(model: str) -> list[Case]:
    """Return the requests with tools for a model."""
    made = [*_choices(), *_copied(), *_round_trips()]
    return [Case(name, parameter, CHAT, {"model": model, **body}) for name, parameter, body in made]


def few_tool_cases(model: str) -> list[Case]:
    """Return those of them that a trained model answers readably, streamed where it calls by itself."""
    return [case for case in tool_cases(model) if case.parameter == "tools" or not case.body.get("stream")]


def reasoning_cases(model: str) -> list[Case]:
    """Return requests whose prompts open the reasoning, for the tiny model."""
    made = []
    variants: dict[str, dict[str, Any]] = {
        "greedy": {"temperature": 0},
        "seeded": {"temperature": 1, "seed": 5},
        "with n": {"temperature": 1, "seed": 6, "n": 3},
        "cut off": {"temperature": 1, "seed": 7, "max_tokens": 2},
        "without end": {"temperature": 1, "seed": 8, "allowed_token_ids": _REASONED[1:]},
        "that is empty": {"temperature": 0, "logit_bias": {str(THINK_END): 100}, "max_tokens": 1},
        "with a stop string": {"temperature": 1, "seed": 9, "stop": ["e"]},
    }
    for name, more in variants.items():
        body: dict[str, Any] = {
            "messages": [QUESTION],
            "max_tokens": 60,
            "allowed_token_ids": _REASONED,
            "chat_template_kwargs": {"thinking": True},
            **more,
        }
        if "logit_bias" in body:
            del body["allowed_token_ids"]
        made += [(f"chat reasoning {name}{how}", body | streamed) for how, streamed in _WAYS.items()]
    return [Case(name, "reasoning", CHAT, {"model": model, **body}) for name, body in made]


_WAYS: dict[str, dict[str, Any]] = {
    "": {},
    ", streamed": {"stream": True, "stream_options": {"include_usage": True}},
}
_Made = Iterator[tuple[str, str, dict[str, Any]]]


def _choices() -> _Made:
    greedy = {"messages": [QUESTION], "temperature": 0, "max_tokens": 24}
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "one": ("tools", {"tools": [WEATHER]}),
        "several": ("tools", {"tools": [WEATHER, TIME, STOP]}),
        "with structured output": ("tools", {"tools": [WEATHER], "response_format": {"type": "json_object"}}),
        "auto": ("tool_choice", {"tools": [WEATHER], "tool_choice": "auto"}),
        "none of several": ("tool_choice", {"tools": [WEATHER, TIME], "tool_choice": "none"}),
        "required": ("tool_choice", {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 60}),
        "required of several": ("tool_choice", {"tools": [TIME, WEATHER], "tool_choice": "required", "max_tokens": 60}),
        "required, seeded": (
            "tool_choice",
            {"tools": [WEATHER], "tool_choice": "required", "temperature": 1, "seed": 3, "n": 2, "max_tokens": 60},
        ),
        "named": ("tool_choice", {"tools": [WEATHER, TIME], "tool_choice": NAMED, "max_tokens": 60}),
        "required, cut off": ("tool_choice", {"tools": [WEATHER], "tool_choice": "required", "max_tokens": 5}),
        "named, cut off": ("tool_choice", {"tools": [WEATHER], "tool_choice": NAMED, "max_tokens": 3}),
        "false, required": (
            "parallel_tool_calls",
            {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 60},
        ),
        "true, required": (
            "parallel_tool_calls",
            {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": True, "max_tokens": 60},
        ),
    }
    for name, (parameter, body) in bodies.items():
        for how, streamed in _WAYS.items():
            yield f"chat {parameter} {name}{how}", parameter, greedy | body | streamed


def _copied() -> _Made:
    for name, text in _COPIED.items():
        messages = [{"role": "user", "content": f"Repeat this text exactly, and nothing else:\n{text}"}]
        body = {"messages": messages, "tools": [WEATHER], "temperature": 0, "max_tokens": 70}
        for how, streamed in _WAYS.items():
            yield f"chat tools with {name}{how}", "tools", body | streamed
            if name == "two calls":
                one = {"parallel_tool_calls": False}
                yield f"chat parallel_tool_calls false with {name}{how}", "parallel_tool_calls", body | streamed | one


def _round_trips() -> _Made:
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    spoken = {**called, "content": "Let me see."}
    conversations = {
        "a result": [QUESTION, called, RESULT],
        "a result after words": [{"role": "system", "content": "Be short."}, QUESTION, spoken, RESULT],
        "a result and a question": [QUESTION, called, RESULT, {"role": "assistant", "content": "Sunny."}, QUESTION],
    }
    for name, messages in conversations.items():
        body = {"messages": messages, "tools": [WEATHER], "temperature": 0, "max_tokens": 16}
        yield f"chat tools after {name}", "tools", body
