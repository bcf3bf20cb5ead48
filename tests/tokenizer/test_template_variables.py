"""Variables that a caller sends for the chat template, in the templates of models that read them."""

from __future__ import annotations

from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tokenizer_files import CHAT_TEMPLATE, TokenizerFiles
from services.tokenizer.wire import chat_prompt
from streamomni.text.v1 import chat_pb2
from tests.tokenizer.conftest import SMOLLM2, FilesOf, TokenizerOf


def rendered(tokenizer: TextTokenizer, reasoning_effort: str | None = None, kwargs: str | None = None) -> str:
    """What a small chat becomes."""
    chat = chat_pb2.ChatPrompt(
        messages=[chat_pb2.ChatMessage(role="user", text="Hi")],
        reasoning_effort=reasoning_effort,
        chat_template_kwargs_json=kwargs,
    )
    return "".join(segment.text for segment in chat_prompt(chat).segments(tokenizer))


def test_reasoning_effort_is_a_variable(files_of: FilesOf) -> None:
    """A template that reads the effort gets what the caller sends, whichever of both ways it takes; left out it stays
    undefined, so that the template's own default counts."""
    template = "Reasoning: {{ reasoning_effort if reasoning_effort is defined else 'medium' }}"
    contents = {**files_of(SMOLLM2).contents, CHAT_TEMPLATE: template.encode()}
    tokenizer = TextTokenizer(TokenizerFiles(contents))
    assert rendered(tokenizer, "low") == "Reasoning: low"
    assert rendered(tokenizer, kwargs='{"reasoning_effort": "high"}') == "Reasoning: high"
    assert rendered(tokenizer) == "Reasoning: medium"


def test_thinking_can_be_switched_off(tokenizer_of: TokenizerOf) -> None:
    """Qwen 3's template closes the reasoning before it begins where enable_thinking is false."""
    tokenizer = tokenizer_of("qwen3")
    assert rendered(tokenizer, kwargs='{"enable_thinking": false}').endswith("<think>\n\n</think>\n\n")
    assert "<think>" not in rendered(tokenizer)
