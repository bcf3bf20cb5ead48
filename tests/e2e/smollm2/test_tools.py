"""Tools through the official openai client: enforced calls give valid arguments, streamed and not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.e2e.service import Service


def tool(name: str, **properties: Any) -> Any:
    """A tool all of whose parameters are required."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}


WEATHER = tool("get_weather", city={"type": "string", "enum": ["Paris", "London"]}, days={"enum": [1, 2]})
TIME = tool("get_time", zone={"type": "string", "enum": ["UTC", "CET"]})
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris tomorrow?"}]
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}
ALLOWED: dict[str, list[Any]] = {
    "get_weather": [{"city": city, "days": days} for city in ("Paris", "London") for days in (1, 2)],
    "get_time": [{"zone": "UTC"}, {"zone": "CET"}],
}


@pytest.fixture
def client(service: Service) -> Iterator[openai.OpenAI]:
    """A client with the service as its base URL."""
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def streamed(client: openai.OpenAI, **fields: Any) -> tuple[list[tuple[str, str]], list[str], str]:
    """Names and arguments of a stream's calls, its finish reasons, and its content."""
    calls: list[tuple[str, str]] = []
    reasons: list[str] = []
    content = ""
    with client.chat.completions.create(stream=True, **fields) as stream:
        for chunk in stream:
            for choice in chunk.choices:
                content += choice.delta.content or ""
                reasons += [choice.finish_reason] if choice.finish_reason else []
                for piece in choice.delta.tool_calls or []:
                    assert piece.function is not None
                    if piece.id:
                        assert piece.index == len(calls) and piece.type == "function" and piece.function.name
                        calls.append((piece.function.name, ""))
                    name, arguments = calls[piece.index]
                    calls[piece.index] = (name, arguments + (piece.function.arguments or ""))
    return calls, reasons, content


@pytest.mark.parametrize("choice", [NAMED, "required"])
def test_enforced_calls(client: openai.OpenAI, service: Service, choice: Any) -> None:
    """A named function, or any with `required`, is called with arguments that its schema allows; the stream's
    pieces make the same call, and nothing else is said."""
    fields: dict[str, Any] = {
        "model": service.model,
        "messages": QUESTION,
        "tools": [WEATHER, TIME],
        "tool_choice": choice,
        "parallel_tool_calls": False,
        "temperature": 0,
        "max_tokens": 80,
    }
    (whole,) = client.chat.completions.create(**fields).choices
    assert (whole.finish_reason, whole.message.content) == ("tool_calls", None)
    (call,) = whole.message.tool_calls or []
    assert call.type == "function" and call.id
    assert json.loads(call.function.arguments) in ALLOWED[call.function.name]
    if choice == NAMED:
        assert call.function.name == "get_weather"
    calls, reasons, content = streamed(client, **fields)
    assert calls == [(call.function.name, call.function.arguments)]
    assert (reasons, content) == (["tool_calls"], "")


def test_a_result_goes_back_to_the_model(client: openai.OpenAI, service: Service) -> None:
    """After a call and its result the model answers in words; tool_choice none forbids another call."""
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Paris", "days": 1}'},
    }
    messages: Any = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 25 degrees."},
    ]
    answer = client.chat.completions.create(
        model=service.model, messages=messages, tools=[WEATHER], tool_choice="none", temperature=0, max_tokens=12
    )
    assert answer.choices[0].message.content
    assert answer.choices[0].message.tool_calls is None
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=service.model, messages=messages[2:], max_tokens=5)
    assert caught.value.param == "messages[0].tool_call_id"


def test_auto_leaves_the_choice_to_the_model(client: openai.OpenAI, service: Service) -> None:
    """With tools and no tool_choice the model sees the tools and answers in words or calls; both are well-formed."""
    fields: dict[str, Any] = {"model": service.model, "messages": QUESTION, "temperature": 0, "max_tokens": 24}
    without = client.chat.completions.create(**fields)
    (whole,) = client.chat.completions.create(tools=[WEATHER], **fields).choices
    answer = client.chat.completions.create(tools=[WEATHER], **fields)
    assert answer.usage is not None and without.usage is not None
    assert answer.usage.prompt_tokens > without.usage.prompt_tokens + 50, "the prompt shows the tools"
    calls, reasons, content = streamed(client, tools=[WEATHER], **fields)
    assert content == (whole.message.content or "")
    assert [name for name, _ in calls] == [
        call.function.name for call in whole.message.tool_calls or [] if call.type == "function"
    ]
    assert reasons == [whole.finish_reason]
