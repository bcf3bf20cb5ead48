"""The kinds of prompt, and how each becomes token ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.tokenizer.context_policy import REFUSE, ContextPolicy
from services.tokenizer.output_parsers.port import OutputParser
from services.tokenizer.segment import Segment
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tool_prompt import with_tool_prompt
from services.tokenizer.tool_use import ToolUse

# Tokens that hold a tag at the end of a prompt and the white space after it.
_PROMPT_END = 16


class Prompt(Protocol):
    """A prompt of one kind."""

    @property
    def size(self) -> int:
        """Characters or ids; tells whether turning it into ids may take long."""

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """Number of tokens that it has at least, found in no time."""

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Its token ids.

        Raises:
            InvalidRequest: it makes no prompt.
        """


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """Text to go on with."""

    text: str
    add_special_tokens: bool

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text)

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """By the characters."""
        return tokenizer.least_tokens(self.size)

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Encode the text."""
        return tokenizer.encode(self.text, self.add_special_tokens)


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Token ids to go on with."""

    ids: Sequence[int]

    @property
    def size(self) -> int:
        """Always 0: there is nothing to do."""
        return 0

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """Their number."""
        return len(self.ids)

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids. Which there are is the engine's to say: the tokenizer may know fewer."""
        return list(self.ids)


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation."""

    messages: Sequence[Mapping[str, object]]
    add_generation_prompt: bool
    continue_final_message: bool
    template_variables: Mapping[str, object]
    size: int
    tools: Sequence[Mapping[str, object]] = ()
    policy: ContextPolicy = REFUSE

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """By the size of all that it holds."""
        return tokenizer.least_tokens(self.size)

    def segments(self, tokenizer: TextTokenizer) -> list[Segment]:
        """Render the conversation with the model's chat template; one that knows no tools gets them as text."""
        messages, tools = self.messages, self.tools
        if not tokenizer.takes_tools:
            messages, tools = with_tool_prompt(messages, tools), ()
        return tokenizer.render_chat(
            messages,
            tools or None,
            add_generation_prompt=self.add_generation_prompt,
            continue_final_message=self.continue_final_message,
            template_variables=self.template_variables,
        )

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Render and encode."""
        return tokenizer.encode_segments(self.segments(tokenizer))


@dataclass(frozen=True, slots=True)
class ChatOutput:
    """What the answer to a chat may hold beside content.

    Attributes:
        tools: those that may be called.
        continued: the text of the assistant's message that the output goes on with; "" begins a new one.
    """

    tools: ToolUse
    continued: str = ""

    def parsers(self, tokenizer: TextTokenizer, prompt_token_ids: Sequence[int]) -> Callable[[], OutputParser] | None:
        """What makes a parser for each choice; None where all text is content.

        Raises:
            Unsupported: the model may call tools, but how it writes calls is not known.
        """
        output_format = tokenizer.output_format
        end = self.continued or tokenizer.decode(prompt_token_ids[-_PROMPT_END:], skip_special_tokens=False)
        opened = output_format.opens_reasoning(end, continued=bool(self.continued))
        return output_format.parsers(self.tools, reasoning_opened=opened)
