"""The kinds of prompt, and how each becomes token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.chassis.errors import InvalidRequest
from services.tokenizer.segment import Segment
from services.tokenizer.text_tokenizer import TextTokenizer


class Prompt(Protocol):
    """A prompt of one kind."""

    @property
    def size(self) -> int:
        """Characters or ids; tells whether turning it into ids may take long."""

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

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Encode the text."""
        return tokenizer.encode(self.text, self.add_special_tokens)


@dataclass(frozen=True, slots=True)
class TokenPrompt:
    """Token ids to go on with."""

    ids: list[int]

    @property
    def size(self) -> int:
        """Always 0: there is nothing to do."""
        return 0

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Return the ids; the engine checks them, and the decoder must not fail on them before."""
        worst = max(self.ids, default=0)
        if worst >= tokenizer.vocab_size:
            raise InvalidRequest(
                f"the prompt holds {worst}; token ids of this model are 0 to {tokenizer.vocab_size - 1}",
                param="prompt",
                reason="TOKEN_ID_OUT_OF_VOCABULARY",
            )
        return self.ids


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation."""

    messages: Sequence[Mapping[str, object]]
    add_generation_prompt: bool
    continue_final_message: bool
    template_variables: Mapping[str, object]
    size: int

    def segments(self, tokenizer: TextTokenizer) -> list[Segment]:
        """Render the conversation with the model's chat template."""
        return tokenizer.render_chat(
            self.messages,
            add_generation_prompt=self.add_generation_prompt,
            continue_final_message=self.continue_final_message,
            template_variables=self.template_variables,
        )

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Render and encode."""
        return tokenizer.encode_segments(self.segments(tokenizer))
