"""The template with tools is what our tokenizer makes of a model whose template has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.tokenizer.chat_template import ChatTemplate
from services.tokenizer.tool_prompt import with_tool_prompt
from tests.tools_template import with_tools

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "Günstig", "parameters": {"type": "object", "properties": {}}},
}
BARE: dict[str, Any] = {"type": "function", "function": {"name": "stop", "parameters": {}, "strict": True}}
SYSTEM = {"role": "system", "content": "Be short."}
QUESTION = {"role": "user", "content": "Sunny?"}
CALL = {"type": "function", "id": "call_1", "function": {"name": "get_weather", "arguments": '{"city": "Zürich"}'}}
CALLED = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Yes"},
]
SPOKEN = [{"role": "assistant", "content": "Let me see.", "tool_calls": [CALL, CALL]}, *CALLED[1:], *CALLED[1:]]


def rendered(source: str, messages: Sequence[Mapping[str, object]], tools: Sequence[Any] = (), **more: object) -> str:
    """What a template makes of a chat."""
    template = ChatTemplate({"default": source}, {}, [])
    return "".join(part.text for part in template.render(messages, tools or None, template_variables=more))


@pytest.fixture(scope="module")
def without(smollm2: Path) -> str:
    """A template that shows no tools."""
    return (smollm2 / "chat_template.jinja").read_text(encoding="utf-8")


@pytest.mark.parametrize("system", [[], [SYSTEM]])
@pytest.mark.parametrize("rest", [[QUESTION], [QUESTION, *CALLED], [QUESTION, *SPOKEN, QUESTION]])
@pytest.mark.parametrize("tools", [[TOOL], [BARE, TOOL]])
def test_tools_are_told_alike(system: list[Any], rest: list[Any], tools: list[Any], without: str) -> None:
    """Both ways give the same prompt, whoever speaks first, with calls, results and several tools."""
    messages = [*system, *rest]
    told = rendered(without, with_tool_prompt(messages, tools))
    assert rendered(with_tools(without), messages, tools) == told
    assert "<tools>" in told


@pytest.mark.parametrize(
    "messages", [[QUESTION], [SYSTEM, QUESTION], [QUESTION, {"role": "assistant", "content": "No"}]]
)
def test_without_tools_nothing_changes(messages: list[Any], without: str) -> None:
    """A chat without tools is what the first template makes of it; `thinking` opens the reasoning."""
    assert rendered(with_tools(without), messages) == rendered(without, messages)
    assert rendered(with_tools(without), messages, thinking=True) == rendered(without, messages) + "<think>\n"
