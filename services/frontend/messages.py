"""Messages of a chat, from JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.fields import Fields, shown

ROLES = ("system", "developer", "user", "assistant", "tool")
MAX_MESSAGES = 2048
MAX_PARTS = 1024
MAX_TOOL_CALLS = 128
# Parts that are not text; they are refused, and nothing they point to is opened.
MEDIA_PARTS = ("audio_url", "file", "image", "image_url", "input_audio", "input_image", "video", "video_url")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the assistant made; `arguments_json` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `content` is text, text parts, or None where an assistant says nothing."""

    role: str
    content: str | tuple[str, ...] | None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    reasoning: str | None = None


def parse_messages(fields: Fields) -> tuple[Message, ...]:
    """Read `messages`, at least one.

    Raises:
        InvalidRequest: one is malformed, or answers a tool call that nobody made.
        Unsupported: one has a part that is not text.
    """
    values = fields.array("messages", MAX_MESSAGES)
    if not values:
        raise InvalidRequest("messages must be a list of at least one message", param="messages")
    messages: list[Message] = []
    call_ids: set[str] = set()
    for index, value in enumerate(values):
        path = f"messages[{index}]"
        if not isinstance(value, dict):
            raise InvalidRequest(f"{path} must be an object, but it is {shown(value)}", param=path)
        message = _parse_message(Fields(value, f"{path}."))
        call_ids.update(call.id for call in message.tool_calls)
        if message.role == "tool" and message.tool_call_id not in call_ids:
            raise InvalidRequest(
                f"{path}.tool_call_id must be the id of a tool call in an assistant message before it",
                param=f"{path}.tool_call_id",
            )
        messages.append(message)
    return tuple(messages)


def _parse_message(fields: Fields) -> Message:
    role = fields.value("role")
    if role not in ROLES:
        raise InvalidRequest(f"{fields.path('role')} must be one of {', '.join(ROLES)}", param=fields.path("role"))
    is_assistant = role == "assistant"
    for name in ("function_call", "audio"):
        if fields.value(name) is not None:
            raise Unsupported(f"{fields.path(name)} is not supported by this version", param=fields.path(name))
    return Message(
        role=role,
        content=_parse_content(fields, may_be_null=is_assistant),
        name=fields.string("name"),
        tool_calls=parse_tool_calls(fields) if is_assistant else _refuse(fields, "tool_calls", "assistant"),
        tool_call_id=fields.string("tool_call_id") if role == "tool" else None,
        reasoning=_parse_reasoning(fields) if is_assistant else None,
    )


def _parse_content(fields: Fields, *, may_be_null: bool) -> str | tuple[str, ...] | None:
    content = fields.value("content")
    path = fields.path("content")
    if isinstance(content, str) or (content is None and may_be_null):
        return content
    if not isinstance(content, list):
        raise InvalidRequest(f"{path} must be a string or a list of parts, but it is {shown(content)}", param=path)
    if not 1 <= len(content) <= MAX_PARTS:
        raise InvalidRequest(f"{path} must have 1 to {MAX_PARTS} parts, but it has {len(content)}", param=path)
    return tuple(_parse_part(part, f"{path}[{index}]") for index, part in enumerate(content))


def _parse_part(part: Any, path: str) -> str:
    if not isinstance(part, dict):
        raise InvalidRequest(f"{path} must be an object, but it is {shown(part)}", param=path)
    kind = part.get("type")
    # The text of a refusal is what the assistant said, under another name.
    text = part.get({"text": "text", "refusal": "refusal"}.get(kind, "")) if isinstance(kind, str) else None
    if isinstance(text, str):
        return text
    if kind in ("text", "refusal"):
        raise InvalidRequest(f"{path}.{kind} must be a string, but it is {shown(text)}", param=f"{path}.{kind}")
    if kind in MEDIA_PARTS:
        raise Unsupported(f"{path} is of type {kind}, but only text parts are supported by this version", param=path)
    raise InvalidRequest(f"{path}.type must be text", param=f"{path}.type")


def parse_tool_calls(fields: Fields) -> tuple[ToolCall, ...]:
    """Read `tool_calls` of an assistant's message.

    Raises:
        InvalidRequest: one is malformed.
    """
    values = fields.array("tool_calls", MAX_TOOL_CALLS) or []
    calls: list[ToolCall] = []
    for index, value in enumerate(values):
        path = f"{fields.path('tool_calls')}[{index}]"
        if not isinstance(value, dict) or value.get("type", "function") != "function":
            raise InvalidRequest(f"{path} must be an object of type function", param=path)
        call = Fields(value, f"{path}.")
        function = call.nested("function")
        call_id = call.string("id")
        name = function.string("name") if function is not None else None
        arguments = function.string("arguments") if function is not None else None
        if not call_id or not name or arguments is None:
            raise InvalidRequest(f"{path} must have id, function.name and function.arguments", param=path)
        calls.append(ToolCall(call_id, name, arguments))
    return tuple(calls)


def _parse_reasoning(fields: Fields) -> str | None:
    # Both spellings are in use, and callers send back what they were given.
    reasoning = fields.string("reasoning")
    return reasoning if reasoning is not None else fields.string("reasoning_content")


def _refuse(fields: Fields, name: str, role: str) -> tuple[()]:
    if fields.value(name):
        raise InvalidRequest(f"{fields.path(name)} is for role {role} only", param=fields.path(name))
    return ()
