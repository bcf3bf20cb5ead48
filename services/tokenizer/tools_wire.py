"""Tools and their calls, to and from their messages."""

from __future__ import annotations

import json

from services.chassis.errors import InvalidRequest
from services.tokenizer.events import Parsed
from services.tokenizer.output_parsers.json_call import MAX_NAME
from services.tokenizer.tool_use import Tool, ToolMode, ToolUse
from streamomni.text.v1 import chat_pb2

MAX_TOOLS = 128
# Levels of a schema: what reads and writes it goes a level deeper for each.
_MAX_DEPTH = 64
_MODES = {
    chat_pb2.ToolChoice.MODE_NONE: ToolMode.NONE,
    chat_pb2.ToolChoice.MODE_AUTO: ToolMode.AUTO,
    chat_pb2.ToolChoice.MODE_REQUIRED: ToolMode.REQUIRED,
    chat_pb2.ToolChoice.MODE_FUNCTION: ToolMode.FUNCTION,
}


def tool_use(chat: chat_pb2.ChatPrompt) -> ToolUse:
    """Read the tools of a chat.

    Raises:
        InvalidRequest: one is malformed, or the choice names none of them.
    """
    if len(chat.tools) > MAX_TOOLS:
        raise InvalidRequest(f"{len(chat.tools)} tools; at most {MAX_TOOLS} are allowed", param="tools")
    tools = tuple(_tool(message, f"tools[{position}]") for position, message in enumerate(chat.tools))
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise InvalidRequest("two tools have the same name; give each its own", param="tools")
    mode = _MODES.get(chat.tool_choice.mode, ToolMode.AUTO if tools else ToolMode.NONE)
    if mode is not ToolMode.NONE and not tools:
        raise InvalidRequest("tool_choice asks for calls, but there are no tools; send tools", param="tool_choice")
    function = chat.tool_choice.function_name if mode is ToolMode.FUNCTION else ""
    if mode is ToolMode.FUNCTION and function not in names:
        raise InvalidRequest("tool_choice names a function that is not among the tools", param="tool_choice")
    parallel = chat.parallel_tool_calls if chat.HasField("parallel_tool_calls") else True
    return ToolUse(mode, tools, function, parallel)


def check_tool_results(chat: chat_pb2.ChatPrompt) -> None:
    """Check that each tool message answers a call.

    Raises:
        InvalidRequest: nobody made the call before it.
    """
    call_ids: set[str] = set()
    for position, message in enumerate(chat.messages):
        call_ids.update(call.id for call in message.tool_calls)
        if message.role == "tool" and message.tool_call_id not in call_ids:
            raise InvalidRequest(
                f"messages[{position}].tool_call_id is not the id of a tool call in a message before it",
                param=f"messages[{position}].tool_call_id",
            )


def pieces(parsed: Parsed) -> list[chat_pb2.ToolCallDelta]:
    """The messages of a delta's pieces of calls."""
    return [
        chat_pb2.ToolCallDelta(index=piece.index, id=piece.id, name=piece.name, arguments_json=piece.arguments)
        for piece in parsed.tool_calls
    ]


def _tool(message: chat_pb2.Tool, where: str) -> Tool:
    if not 1 <= len(message.name) <= MAX_NAME:
        raise InvalidRequest(f"{where}.name must have 1 to {MAX_NAME} characters", param=f"{where}.name")
    parameters: object = {}
    if message.parameters_json:
        try:
            parameters = json.loads(message.parameters_json)
        except (ValueError, RecursionError):
            parameters = None
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise InvalidRequest(
            f"{where}.parameters is not a JSON Schema of an object; send one", param=f"{where}.parameters"
        )
    if not _is_shallow(parameters, _MAX_DEPTH):
        raise InvalidRequest(
            f"{where}.parameters is nested deeper than {_MAX_DEPTH} levels; flatten it", param=f"{where}.parameters"
        )
    description = message.description if message.HasField("description") else None
    return Tool(message.name, description, parameters, message.strict)


def _is_shallow(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels > 0 and all(_is_shallow(member, levels - 1) for member in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_shallow(member, levels - 1) for member in value)
    return True
