"""Choosing parsers by a model's files."""

from __future__ import annotations

import pytest

from services.chassis.errors import Unsupported
from services.tokenizer.output_parsers.harmony import Harmony
from services.tokenizer.output_parsers.port import ToolCallPiece
from services.tokenizer.output_parsers.selection import OutputFormat, ParserNames, output_format
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tool_use import Tool, ToolMode, ToolUse
from tests.tokenizer.conftest import SMOLLM2, FilesOf, TokenizerOf
from tests.tokenizer.output_parsers.parsing import Outcome, parsed

FUNCTION = Tool("f", None, {})
AUTO = ToolUse(ToolMode.AUTO, (FUNCTION,))


@pytest.mark.parametrize(
    ("model", "tools", "reasoning"),
    [
        ("qwen3", "hermes", "think"),
        ("mistral_nemo", "mistral", "none"),
        ("gptoss", "harmony", "harmony"),
        # This package's template knows no tools, so they are told in Hermes' format.
        ("deepseek_v3", "hermes", "none"),
        (SMOLLM2, "hermes", "none"),
    ],
)
def test_real_models(tokenizer_of: TokenizerOf, model: str, tools: str, reasoning: str) -> None:
    """The parsers follow from the chat template and the added tokens of real tokenizers."""
    found = tokenizer_of(model).output_format
    assert (found.tools, found.reasoning) == (tools, reasoning)


@pytest.mark.parametrize(
    ("template", "added_tokens", "tools", "reasoning"),
    [
        ("{{ tools }}<|channel|>analysis<|message|>", [], "harmony", "harmony"),
        ("{{ tools }}<｜tool▁calls▁begin｜>", [], "deepseek", "none"),
        ("{{ tools }}</think>", ["<｜tool▁calls▁begin｜>"], "deepseek", "think"),
        ("{{ tools }}", ["[TOOL_CALLS]", "[THINK]", "[/THINK]"], "mistral", "mistral"),
        ("{{ tools }}<tool_call><function=f><parameter=a>", ["<tool_call>"], "qwen3_coder", "none"),
        ("{{ tools }}<function=f>{}</function>", [], "none", "none"),
        ("{{ tools }}<|start_header_id|>", ["<|python_tag|>"], "llama3_json", "none"),
        ("{{ tools }}<|start_header_id|>[func_name1(a=1)]", [], "pythonic", "none"),
        ("{{ tools }}<|header_start|>", ["<|python_start|>"], "pythonic", "none"),
        ("{{ tools }}", [], "none", "none"),
        ("{{ messages }}", [], "hermes", "none"),
    ],
)
def test_templates(template: str, added_tokens: list[str], tools: str, reasoning: str) -> None:
    """Each family is known by what only its template or tokens hold; an unknown one has no parser."""
    found = output_format(template, added_tokens, ParserNames())
    assert (found.tools, found.reasoning) == (tools, reasoning)


def test_an_operator_may_choose() -> None:
    """Given names go before what the files say."""
    found = output_format("{{ tools }}<tool_call></think>", [], ParserNames("pythonic", "none"))
    assert (found.tools, found.reasoning) == ("pythonic", "none")


def test_nothing_to_parse_needs_no_parser() -> None:
    """Without tools and reasoning all text is content, on the way that plain text takes."""
    assert OutputFormat("hermes", "none").parsers(ToolUse(), reasoning_opened=False) is None
    assert OutputFormat("hermes", "none").parsers(ToolUse(ToolMode.NONE, (FUNCTION,)), reasoning_opened=False) is None


def test_an_unknown_format_is_refused() -> None:
    """Where the model may call but its calls would not be found, the request is refused; enforced calls work."""
    unknown = OutputFormat("none", "none")
    with pytest.raises(Unsupported):
        unknown.parsers(AUTO, reasoning_opened=False)
    new_parser = unknown.parsers(ToolUse(ToolMode.FUNCTION, (FUNCTION,), "f"), reasoning_opened=False)
    assert new_parser is not None
    assert parsed(lambda _: new_parser(), "").calls == []


@pytest.mark.parametrize(
    ("text", "continued", "opened"),
    [
        ("<|im_start|>assistant\n<think>\n", False, True),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", False, False),
        ("<|im_start|>assistant\n", False, False),
        ("<think>\nLet me", True, True),
        ("<think>a</think>b", True, False),
        ("Write <think>", True, False),
    ],
)
def test_the_prompt_decides_whether_reasoning_is_open(text: str, continued: bool, opened: bool) -> None:
    """A template may open the reasoning, and a continued message may have been cut inside it."""
    assert OutputFormat("hermes", "think").opens_reasoning(text, continued=continued) is opened
    assert not OutputFormat("hermes", "none").opens_reasoning(text, continued=continued)


def test_reasoning_and_calls_are_composed() -> None:
    """What follows the reasoning is read as calls only where tools may be called."""
    text = 'a</think><tool_call>{"name": "f"}</tool_call>'
    free = OutputFormat("hermes", "think").parsers(ToolUse(), reasoning_opened=True)
    calling = OutputFormat("hermes", "think").parsers(AUTO, reasoning_opened=True)
    assert free is not None and calling is not None
    assert parsed(lambda _: free(), text) == Outcome(text.removeprefix("a</think>"), "a")
    parser = calling()
    _, call = [*parser.feed(text), *parser.flush()]
    assert isinstance(call, ToolCallPiece) and (call.name, call.arguments) == ("f", "{}")


def test_types_come_from_the_chats_tools() -> None:
    """A format that writes values as text gets their types from the request's own tools."""
    typed = Tool("f", None, {"properties": {"a": {"type": "string"}}})
    new_parser = OutputFormat("qwen3_coder", "none").parsers(ToolUse(ToolMode.AUTO, (typed,)), reasoning_opened=False)
    assert new_parser is not None
    parser = new_parser()
    parts = parser.feed("<tool_call><function=f><parameter=a>5</parameter></function></tool_call>")
    assert "".join(part.arguments for part in parts if isinstance(part, ToolCallPiece)) == '{"a": "5"}'


def test_parsers_see_special_tags(files_of: FilesOf) -> None:
    """Mistral's tag is a special token: its parser sees it, readers of plain text do not."""
    tokenizer = TextTokenizer(files_of("mistral_nemo"))
    ids = [9, *tokenizer.encode('f{"a": 1}', False), 2]
    plain, parsing = tokenizer.decoder([500]), tokenizer.parsing_decoder([500])
    assert plain.feed(ids) == 'f{"a": 1}'
    assert parsing.feed(ids) == '[TOOL_CALLS]f{"a": 1}'


def test_harmony_reads_the_models_own_tokens(tokenizer_of: TokenizerOf) -> None:
    """gpt-oss' marks are special tokens: with its real tokenizer, the ids of an output give reasoning and a call."""
    tokenizer = tokenizer_of("gptoss")
    text = (
        "<|channel|>analysis<|message|>Look it up 🦙.<|end|><|start|>assistant<|channel|>commentary"
        ' to=functions.f <|constrain|>json<|message|>{"a": "é"}'
    )
    ids = Harmony().encoding.encode(text, allowed_special="all")
    new_parser = tokenizer.output_format.parsers(AUTO, reasoning_opened=False)
    assert new_parser is not None
    decoder, parser, outcome = tokenizer.parsing_decoder([500]), new_parser(), Outcome()
    for token_id in ids:
        for part in parser.feed(decoder.feed([token_id])):
            outcome.take(part)
    for part in parser.flush():
        outcome.take(part)
    assert (outcome.content, outcome.reasoning, outcome.named) == ("", "Look it up 🦙.", [("f", '{"a": "é"}')])
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
