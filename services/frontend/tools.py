"""Tools of a chat, from JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.fields import Fields, shown

MAX_TOOLS = 128
# OpenAI's rule, and the dot that others allow.
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

ToolMode = Literal["none", "auto", "required", "function"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call; `parameters_json` is a JSON Schema, as JSON text, "" for none."""

    name: str
    description: str | None
    parameters_json: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of a request, at least one, and whether they are called; `function` is named with that mode alone."""

    tools: tuple[Tool, ...]
    mode: ToolMode
    function: str | None
    parallel: bool | None


def parse_tools(fields: Fields) -> Tools | None:
    """Read `tools`, `tool_choice` and `parallel_tool_calls`; None without tools.

    Raises:
        InvalidRequest: one is malformed, or the choice names none of the tools.
        Unsupported: a tool or a choice is of a kind that is not served.
    """
    parallel = fields.boolean("parallel_tool_calls")
    values = fields.array("tools", MAX_TOOLS) or []
    tools = tuple(_parse_tool(value, f"tools[{index}]") for index, value in enumerate(values))
    mode, function = _parse_choice(fields)
    if not tools:
        if mode not in (None, "none"):
            raise InvalidRequest("tool_choice needs tools; send tools or leave it out", param="tool_choice")
        return None
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise InvalidRequest("two tools have the same name; give each its own", param="tools")
    if mode == "function" and function not in names:
        raise InvalidRequest(
            "tool_choice.function.name must be the name of one of the tools", param="tool_choice.function.name"
        )
    return Tools(tools, mode or "auto", function, parallel)


def _parse_tool(value: Any, path: str) -> Tool:
    if not isinstance(value, dict):
        raise InvalidRequest(f"{path} must be an object, but it is {shown(value)}", param=path)
    tool = Fields(value, f"{path}.")
    kind = tool.string("type")
    if kind not in (None, "function"):
        raise Unsupported(f"{path} is not of type function, the only one that is supported", param=f"{path}.type")
    function = tool.nested("function")
    if function is None:
        raise InvalidRequest(f"{path}.function must be an object with a name", param=f"{path}.function")
    name = function.string("name")
    if name is None or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{path}.function.name must have 1 to 64 letters, digits, underscores, dashes and dots",
            param=f"{path}.function.name",
        )
    parameters = function.nested("parameters")
    return Tool(
        name=name,
        description=function.string("description"),
        parameters_json="" if parameters is None else orjson.dumps(function.value("parameters")).decode(),
        strict=function.boolean("strict") or False,
    )


def _parse_choice(fields: Fields) -> tuple[ToolMode | None, str | None]:
    choice = fields.value("tool_choice")
    match choice:
        case None:
            return None, None
        case "none" | "auto" | "required":
            return choice, None
        case {"type": "function", "function": {"name": str(name)}}:
            return "function", name
        case {"type": "allowed_tools" | "custom"}:
            raise Unsupported(
                "tool_choice of this type is not supported by this version; use none, auto, required or a function",
                param="tool_choice",
            )
    raise InvalidRequest(
        'tool_choice must be none, auto, required or {"type": "function", "function": {"name": …}}',
        param="tool_choice",
    )
