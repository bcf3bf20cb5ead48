"""Chat messages in the form that chat templates expect."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum

from services.chassis.errors import InvalidRequest


class ContentForm(Enum):
    """The form of `content` that a template takes."""

    STRING = "string"
    STRING_OR_PARTS = "string or parts"
    PARTS = "parts"


def template_messages(messages: Sequence[Mapping[str, object]], form: ContentForm) -> list[dict[str, object]]:
    """Check messages and bring them into the form that the template takes. The given ones are not changed.

    Text parts are joined with a newline for a template that takes strings. No content becomes "". Tool call arguments
    become objects, as templates expect them; where their text is no JSON object it stays text.

    Args:
        messages: OpenAI's message objects, oldest first: `role`, `content` (text, text parts, or None on an assistant
            message), and others such as `name` or `tool_calls`, which go to the template as they are.
        form: what the template takes.

    Raises:
        InvalidRequest: no messages, a message without role, no content where it is needed, a part that is not text.
    """
    if not messages:
        raise InvalidRequest("messages is empty; send at least one message", param="messages")
    return [_template_message(message, f"messages[{index}]", form) for index, message in enumerate(messages)]


def _template_message(message: Mapping[str, object], where: str, form: ContentForm) -> dict[str, object]:
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise InvalidRequest(f"{where} has no role; name it, e.g. user", param=f"{where}.role")
    result = dict(message)
    result["content"] = _content(message.get("content"), role, f"{where}.content", form)
    if role == "assistant" and "tool_calls" in message:
        tool_calls = message["tool_calls"]
        if isinstance(tool_calls, list) and tool_calls:
            result["tool_calls"] = [_with_argument_object(call) for call in tool_calls]
        else:
            del result["tool_calls"]
    return result


def _content(content: object, role: str, where: str, form: ContentForm) -> str | list[dict[str, str]]:
    if content is None:
        if role != "assistant":
            raise InvalidRequest(f"{where} is null, which only an assistant message may have; send text", param=where)
        content = "" if form is not ContentForm.PARTS else []
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if form is ContentForm.PARTS else content
    if not isinstance(content, list):
        raise InvalidRequest(f"{where} is neither text nor a list of text parts", param=where)
    texts = [_part_text(part, f"{where}[{index}]") for index, part in enumerate(content)]
    if form is ContentForm.STRING:
        return "\n".join(texts)
    return [{"type": "text", "text": text} for text in texts]


def _part_text(part: object, where: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(part, Mapping) or kind != "text":
        raise InvalidRequest(f"{where} is a part of type {kind!r}; only type 'text' is served", param=where)
    text = part.get("text")
    if not isinstance(text, str):
        raise InvalidRequest(f"{where} has no text; a text part needs a string", param=f"{where}.text")
    return text


def _with_argument_object(call: object) -> object:
    if not isinstance(call, Mapping) or not isinstance(call.get("function"), Mapping):
        return call
    function = dict(call["function"])
    arguments = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            # A model wrote it in an earlier turn; refusing would refuse every later turn too.
            parsed = None
        function["arguments"] = parsed if isinstance(parsed, dict) else arguments
    return {**call, "function": function}
