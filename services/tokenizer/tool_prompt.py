"""Tools for chat templates that know none: they are told in the system message, and calls and results as text.

The format is that of Hermes (https://github.com/NousResearch/Hermes-Function-Calling), which many models have seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

_INSTRUCTIONS = """You can call these functions. Each line describes one, with a JSON Schema of its parameters:
<tools>
{tools}
</tools>
To call a function, answer with its name and arguments as a JSON object between tags:
<tool_call>
{{"name": <name of the function>, "arguments": <object of arguments>}}
</tool_call>"""


def with_tool_prompt(
    messages: Sequence[Mapping[str, object]], tools: Sequence[Mapping[str, object]]
) -> list[Mapping[str, object]]:
    """The same chat without tools, calls and tool messages: all of them are text.

    Args:
        messages: OpenAI's message objects.
        tools: OpenAI's tool objects; none: only earlier calls and their results become text.
    """
    told = [_as_text(message) for message in messages]
    if not tools:
        return told
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    instructions = _INSTRUCTIONS.format(tools=lines)
    if told and told[0].get("role") == "system":
        return [{**told[0], "content": _joined(told[0].get("content"), instructions)}, *told[1:]]
    return [{"role": "system", "content": instructions}, *told]


def _as_text(message: Mapping[str, object]) -> Mapping[str, object]:
    if message.get("role") == "tool":
        result = _joined(_joined("<tool_response>", message.get("content")), "</tool_response>")
        return {"role": "user", "content": result}
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return message
    text = "\n".join(_call_text(call["function"]) for call in calls)
    rest = {name: value for name, value in message.items() if name != "tool_calls"}
    return {**rest, "content": _joined(message.get("content"), text) if message.get("content") else text}


def _call_text(function: Mapping[str, str]) -> str:
    name = json.dumps(function["name"], ensure_ascii=False)
    return f'<tool_call>\n{{"name": {name}, "arguments": {function["arguments"]}}}\n</tool_call>'


def _joined(first: object, second: object) -> object:
    """Two contents as one: text, or parts where one of them is parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: object) -> list[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # What is no list is refused with the other contents, where messages are checked.
    return list(content) if isinstance(content, list) else [content]
