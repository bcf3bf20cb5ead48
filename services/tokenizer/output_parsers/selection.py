"""Which parser a model's output needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from services.chassis.errors import Unsupported
from services.tokenizer.output_parsers.deepseek import DEEPSEEK_TAGS, DeepSeekParser
from services.tokenizer.output_parsers.forced import ArgumentsParser, CallListParser
from services.tokenizer.output_parsers.harmony import MARKS, Harmony, HarmonyParser
from services.tokenizer.output_parsers.mistral import MISTRAL_TAGS, MistralParser
from services.tokenizer.output_parsers.port import NewId, OutputParser, call_id, short_call_id
from services.tokenizer.output_parsers.pythonic import PYTHON_START, PythonicParser
from services.tokenizer.output_parsers.qwen3_coder import FUNCTION, PARAMETER, QWEN3_CODER_TAGS, Qwen3CoderParser
from services.tokenizer.output_parsers.reasoning import ContentParser, ReasoningParser
from services.tokenizer.output_parsers.tagged import HERMES_TAGS, PYTHON_TAG, HermesParser, LlamaJsonParser
from services.tokenizer.tool_use import ToolMode, ToolUse

ToolParserName = Literal["none", "deepseek", "harmony", "hermes", "llama3_json", "mistral", "pythonic", "qwen3_coder"]
ReasoningParserName = Literal["none", "harmony", "mistral", "think"]

_TOOL_PARSERS: dict[str, Callable[[NewId], OutputParser]] = {
    "deepseek": DeepSeekParser,
    "hermes": HermesParser,
    "llama3_json": LlamaJsonParser,
    "mistral": MistralParser,
    "pythonic": PythonicParser,
}
_REASONING_TAGS = {"mistral": ("[THINK]", "[/THINK]"), "think": ("<think>", "</think>")}
_TAGS: dict[str, tuple[str, ...]] = {
    "deepseek": DEEPSEEK_TAGS,
    "harmony": MARKS,
    "hermes": HERMES_TAGS,
    "llama3_json": (PYTHON_TAG,),
    "mistral": MISTRAL_TAGS,
    "pythonic": (PYTHON_TAG, PYTHON_START),
    "qwen3_coder": QWEN3_CODER_TAGS,
}


@dataclass(frozen=True, slots=True)
class ParserNames:
    """An operator's choice of parsers; None leaves it to the model's files."""

    tools: ToolParserName | None = None
    reasoning: ReasoningParserName | None = None


class OutputFormat:
    """How one model writes calls and reasoning. Immutable, so that generations may share it.

    Args:
        tools, reasoning: names of parsers; harmony is both.
    """

    __slots__ = ("_harmony", "_new_id", "reasoning", "tools")

    def __init__(self, tools: ToolParserName, reasoning: ReasoningParserName) -> None:
        self.tools = tools
        self.reasoning = reasoning
        self._harmony = Harmony() if "harmony" in (tools, reasoning) else None
        self._new_id = short_call_id if tools == "mistral" else call_id

    @property
    def tags(self) -> frozenset[str]:
        """Texts that the parsers look for; a decoder must show them, special tokens or not."""
        return frozenset((*_TAGS.get(self.tools, ()), *_TAGS.get("harmony", ()) * bool(self._harmony))).union(
            _REASONING_TAGS.get(self.reasoning, ())
        )

    def opens_reasoning(self, text: str, *, continued: bool) -> bool:
        """Whether the output begins inside reasoning.

        Args:
            text: the end of the prompt, which its template may have ended with an opening tag.
            continued: the text is an assistant's message that the output goes on with.
        """
        tags = _REASONING_TAGS.get(self.reasoning)
        if tags is None:
            return False
        opening, closing = tags
        if continued:
            return text.lstrip().startswith(opening) and closing not in text
        return text.rstrip().endswith(opening)

    def parsers(self, use: ToolUse, *, reasoning_opened: bool) -> Callable[[], OutputParser] | None:
        """What makes a parser for each choice; None where all text is content.

        Raises:
            Unsupported: the model may call tools, but how it writes calls is not known.
        """
        if use.mode is ToolMode.FUNCTION:
            return lambda: ArgumentsParser(use.function, self._new_id)
        if use.mode is ToolMode.REQUIRED:
            return lambda: CallListParser(self._new_id)
        harmony = self._harmony
        if harmony is not None:
            return lambda: HarmonyParser(harmony, self._new_id)
        may_call = use.mode is ToolMode.AUTO
        if may_call and self.tools == "none":
            raise Unsupported(
                "tool_choice auto is not supported with this model, whose format of calls is not known; name a"
                " function, or use required or none",
                param="tool_choice",
            )
        tags = _REASONING_TAGS.get(self.reasoning)
        if tags is None and not may_call:
            return None

        def new_parser() -> OutputParser:
            answer = self._tool_parser(use) if may_call else ContentParser()
            return answer if tags is None else ReasoningParser(*tags, reasoning_opened, answer)

        return new_parser

    def _tool_parser(self, use: ToolUse) -> OutputParser:
        if self.tools == "qwen3_coder":
            return Qwen3CoderParser(use.tools, self._new_id)
        return _TOOL_PARSERS[self.tools](self._new_id)


def takes_tools(template: str) -> bool:
    """Whether a chat template shows tools."""
    return re.search(r"\btools\b", template) is not None


def output_format(template: str, added_tokens: Collection[str], names: ParserNames) -> OutputFormat:
    """The format of a model.

    Args:
        template: source of its chat templates.
        added_tokens: texts of its tokenizer's added tokens.
        names: go before what the files say.
    """
    tools = names.tools or _tool_parser(template, added_tokens)
    reasoning = names.reasoning or _reasoning_parser(template, added_tokens)
    return OutputFormat(tools, reasoning)


def _tool_parser(template: str, added_tokens: Collection[str]) -> ToolParserName:
    def knows(tag: str) -> bool:
        return tag in template or tag in added_tokens

    if _is_harmony(template, added_tokens):
        return "harmony"
    if not takes_tools(template):
        # The tools are told in a system message, which asks for this format.
        return "hermes"
    if knows(DEEPSEEK_TAGS[0]):
        return "deepseek"
    if knows(MISTRAL_TAGS[0]):
        return "mistral"
    if FUNCTION in template:
        # Without parameters in tags it is Llama's format of an object between tags for the function.
        return "qwen3_coder" if PARAMETER in template else "none"
    if "<tool_call>" in template:
        return "hermes"
    if knows(PYTHON_START) or "[func_name1(" in template:
        return "pythonic"
    if knows(PYTHON_TAG) or "<|start_header_id|>" in template:
        return "llama3_json"
    return "none"


def _reasoning_parser(template: str, added_tokens: Collection[str]) -> ReasoningParserName:
    if _is_harmony(template, added_tokens):
        return "harmony"
    for name, (opening, closing) in _REASONING_TAGS.items():
        if closing in template or (opening in added_tokens and closing in added_tokens):
            return "mistral" if name == "mistral" else "think"
    return "none"


def _is_harmony(template: str, added_tokens: Collection[str]) -> bool:
    marks = ("<|channel|>", "<|message|>")
    return all(mark in template for mark in marks) or all(mark in added_tokens for mark in (*marks, "<|constrain|>"))
