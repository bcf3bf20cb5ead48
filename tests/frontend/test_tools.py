"""Tools of a chat: what is refused, and what reaches the text service."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.fields import Fields
from services.frontend.tools import Tools, parse_tools
from streamomni.text.v1 import chat_pb2
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of

TOOL = {"type": "function", "function": {"name": "add", "description": "a + b", "parameters": {"type": "object"}}}
NAMED = {"type": "function", "function": {"name": "add"}}
ToolChoice = chat_pb2.ToolChoice


def parsed(**fields: Any) -> Tools | None:
    """What these fields of a body mean."""
    return parse_tools(Fields(fields))


@pytest.mark.parametrize(
    ("choice", "mode", "function"),
    [
        (None, "auto", None),
        ("auto", "auto", None),
        ("none", "none", None),
        ("required", "required", None),
        (NAMED, "function", "add"),
    ],
)
def test_choices(choice: Any, mode: str, function: str | None) -> None:
    """With tools the choice is auto unless it is given; a named function is a choice of its own."""
    tools = parsed(tools=[TOOL], tool_choice=choice)
    assert tools is not None
    assert (tools.mode, tools.function, tools.parallel) == (mode, function, None)


@pytest.mark.parametrize("fields", [{}, {"tools": None}, {"tools": []}, {"tools": [], "tool_choice": "none"}])
def test_no_tools(fields: dict[str, Any]) -> None:
    """Without tools nothing is asked for."""
    assert parsed(**fields) is None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"tools": ["add"]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "f" * 65}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": 1}}]}, "tools[0].function.strict"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "sub"}}},
            "tool_choice.function.name",
        ),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
    ],
)
def test_malformed_tools(fields: dict[str, Any], param: str) -> None:
    """Each fault is named with its place."""
    with pytest.raises(InvalidRequest) as caught:
        parsed(**fields)
    assert caught.value.param == param


def test_other_kinds_are_refused() -> None:
    """Custom tools and lists of allowed tools are refused by name, not ignored."""
    for fields in ({"tools": [{"type": "custom"}]}, {"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}):
        with pytest.raises(Unsupported):
            parsed(**fields)


async def test_tools_reach_the_text_service(frontend: Frontend, service: ScriptedTextService) -> None:
    """Tools, the choice and whether calls may be parallel arrive as they are; unset stays unset."""
    body = chat(tools=[TOOL], tool_choice=NAMED, parallel_tool_calls=False)
    assert (await frontend.client.post(CHAT, json=body)).status_code == 200
    sent = service.requests[-1].chat
    (tool,) = sent.tools
    assert (tool.name, tool.description, orjson.loads(tool.parameters_json)) == ("add", "a + b", {"type": "object"})
    assert (sent.tool_choice.mode, sent.tool_choice.function_name) == (ToolChoice.MODE_FUNCTION, "add")
    assert sent.HasField("parallel_tool_calls") and not sent.parallel_tool_calls
    bare = {"type": "function", "function": {"name": "f"}}
    await frontend.client.post(CHAT, json=chat(tools=[bare]))
    sent = service.requests[-1].chat
    assert sent.tools[0].ListFields() == [(chat_pb2.Tool.DESCRIPTOR.fields_by_name["name"], "f")]
    assert not sent.HasField("parallel_tool_calls")


@pytest.mark.parametrize("fields", [{"tools": [TOOL]}, {"tool_choice": "required"}])
async def test_completions_have_no_tools(frontend: Frontend, fields: dict[str, Any]) -> None:
    """On the endpoint that has none, tools are refused, not ignored."""
    response = await frontend.client.post(COMPLETIONS, json=completion(**fields))
    assert response.status_code == 400
    assert error_of(response)["param"] in fields


@pytest.mark.parametrize("fields", [{"functions": [{"name": "f"}]}, {"function_call": "auto"}])
async def test_the_older_fields_are_refused(frontend: Frontend, fields: dict[str, Any]) -> None:
    """What OpenAI replaced by tools is refused by name."""
    response = await frontend.client.post(CHAT, json=chat(**fields))
    assert (response.status_code, error_of(response)["code"]) == (400, "unsupported")
