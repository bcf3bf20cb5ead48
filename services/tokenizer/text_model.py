"""A model as this tier sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.chassis.errors import InvalidRequest
from services.tokenizer.text_tokenizer import TextTokenizer


@dataclass(frozen=True, slots=True)
class TextModel:
    """A model's name, its tokenizer and its limits."""

    name: str
    tokenizer: TextTokenizer
    context_length: int | None
    """Most tokens of prompt and output together; None while the engine does not tell."""
    engine_vocab_size: int | None = None
    """Ids that the engine takes, from 0 on; None while it does not tell. Models are often padded beyond what their
    tokenizer knows; such ids have no text."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest id that may be sent: the engine's word, else the tokenizer's."""
        return self.tokenizer.vocab_size if self.engine_vocab_size is None else self.engine_vocab_size

    def check_token_ids(self, token_ids: Sequence[int], what: str, param: str) -> None:
        """Check that all ids are within the vocabulary.

        Args:
            what: names their place in the error's text.

        Raises:
            InvalidRequest: one is not.
        """
        worst = max(token_ids, default=0)
        if worst >= self.vocab_size:
            raise InvalidRequest(
                f"{what} holds {worst}; token ids of this model are 0 to {self.vocab_size - 1}",
                param=param,
                reason="TOKEN_ID_OUT_OF_VOCABULARY",
            )
