"""Tools as text, for templates that know none."""

from __future__ import annotations

from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.tool_prompt import with_tool_prompt
from tests.tokenizer.conftest import SMOLLM2, TokenizerOf

TOOL: dict[str, object] = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def test_tools_are_told_in_the_system_message() -> None:
    """A system message is lengthened, or made; the other messages stay as they are."""
    user = {"role": "user", "content": "Hi"}
    made = with_tool_prompt([user], [TOOL])
    assert [message["role"] for message in made] == ["system", "user"]
    assert '{"type": "function", "function": {"name": "add", ' in str(made[0]["content"])
    lengthened = with_tool_prompt([{"role": "system", "content": "Be brief."}, user], [TOOL])
    assert lengthened[0]["content"] == f"Be brief.\n{made[0]['content']}"
    parts = [{"type": "text", "text": "Be brief."}]
    as_parts = with_tool_prompt([{"role": "system", "content": parts}, user], [TOOL])[0]["content"]
    assert as_parts == [*parts, {"type": "text", "text": made[0]["content"]}]
    assert lengthened[1:] == made[1:] == [user]


def test_calls_and_results_become_text() -> None:
    """Earlier calls are shown as the model writes them, results as a user's message."""
    messages: list[dict[str, object]] = [
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
        {"role": "assistant", "content": "So.", "tool_calls": [CALL]},
        {"role": "tool", "content": "2", "tool_call_id": "c"},
    ]
    call = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert with_tool_prompt(messages, []) == [
        {"role": "assistant", "content": f"{call}\n{call}"},
        {"role": "assistant", "content": f"So.\n{call}"},
        {"role": "user", "content": "<tool_response>\n2\n</tool_response>"},
    ]


def test_the_default_model_is_told_of_tools(tokenizer_of: TokenizerOf) -> None:
    """SmolLM2's template ignores tools; its prompt holds them all the same, and nothing without them."""
    tokenizer = tokenizer_of(SMOLLM2)

    def prompt(*tools: dict[str, object]) -> str:
        chat = ChatPrompt([{"role": "user", "content": "Hi"}], True, False, {}, 2, tools)
        return "".join(segment.text for segment in chat.segments(tokenizer))

    assert not tokenizer.takes_tools
    assert '"name": "add"' in prompt(TOOL)
    assert "tool" not in prompt()


def test_templates_that_know_tools_get_them(tokenizer_of: TokenizerOf) -> None:
    """Qwen 3's own template shows the tools in its own words."""
    chat = ChatPrompt([{"role": "user", "content": "Hi"}], True, False, {}, 2, (TOOL,))
    text = "".join(segment.text for segment in chat.segments(tokenizer_of("qwen3")))
    assert '<tools>\n{"type": "function", "function": {"name": "add"' in text
    assert text.count("<tools>") == 2
