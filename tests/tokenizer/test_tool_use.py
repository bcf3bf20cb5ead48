"""Tools of a chat: what the template shows, and what structured output enforces."""

from __future__ import annotations

import json

import pytest

from services.chassis.errors import InvalidRequest
from services.tokenizer.tool_use import Tool, ToolMode, ToolUse

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
ADD = Tool("add", "a + b", {"type": "object", "properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": POINT}})
STOP = Tool("stop", None, {}, strict=True)


def test_template_objects() -> None:
    """The template gets OpenAI's tool objects, and none where none may be called."""
    assert ToolUse(ToolMode.AUTO, (ADD, STOP)).template_objects == [
        {"type": "function", "function": {"name": "add", "description": "a + b", "parameters": ADD.parameters}},
        {"type": "function", "function": {"name": "stop", "parameters": {}, "strict": True}},
    ]
    assert ToolUse(ToolMode.NONE, (ADD,)).template_objects == []


def test_free_outputs_have_no_schema() -> None:
    """The model decides with auto, and calls nothing with none."""
    assert ToolUse(ToolMode.AUTO, (ADD,)).json_schema() is None
    assert ToolUse(ToolMode.NONE, (ADD,)).json_schema() is None


def test_a_named_function_enforces_its_arguments() -> None:
    """The whole output is the arguments' object; a function without parameters takes an empty one."""
    named = ToolUse(ToolMode.FUNCTION, (ADD, STOP), "add").json_schema()
    assert named is not None and json.loads(named) == ADD.parameters
    empty = ToolUse(ToolMode.FUNCTION, (ADD, STOP), "stop").json_schema()
    assert empty is not None and json.loads(empty) == {"type": "object", "properties": {}}


def test_required_enforces_a_list_of_calls() -> None:
    """At least one call of any tool, with its own parameters; definitions lie at the root, where references look."""
    text = ToolUse(ToolMode.REQUIRED, (ADD, STOP)).json_schema()
    assert text is not None
    schema = json.loads(text)
    assert (schema["type"], schema["minItems"], "maxItems" in schema) == ("array", 1, False)
    assert schema["$defs"] == {"p": POINT}
    calls = schema["items"]["anyOf"]
    assert [call["properties"]["name"]["enum"] for call in calls] == [["add"], ["stop"]]
    assert calls[0]["properties"]["parameters"] == {"type": "object", "properties": {"a": {"$ref": "#/$defs/p"}}}
    assert list(calls[0]["properties"]) == calls[0]["required"] == ["name", "parameters"]


def test_one_call_only() -> None:
    """Without parallel calls the list has one member."""
    text = ToolUse(ToolMode.REQUIRED, (STOP,), parallel=False).json_schema()
    assert text is not None and json.loads(text)["maxItems"] == 1


def test_contradicting_definitions_are_refused() -> None:
    """Two tools may share a definition, but not one name for two."""
    other = Tool("sub", None, {"type": "object", "$defs": {"p": {"type": "string"}}})
    same = Tool("sub", None, {"type": "object", "$defs": {"p": POINT}})
    assert ToolUse(ToolMode.REQUIRED, (ADD, same)).json_schema() is not None
    with pytest.raises(InvalidRequest):
        ToolUse(ToolMode.REQUIRED, (ADD, other)).json_schema()
