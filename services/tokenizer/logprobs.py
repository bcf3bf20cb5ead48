"""Log probabilities of tokens, as the engine gives them and with the tokens' own bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from services.tokenizer.token_table import TokenTable


@dataclass(slots=True)
class Logprobs:
    """Columns: entry i of each belongs to token i of a run. The `top_` columns have `top_count` entries a token.

    `text_offsets` are the characters of the choice's text before each token's own; empty until the text is known.
    """

    logprobs: list[float] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    top_count: int = 0
    top_token_ids: list[int] = field(default_factory=list)
    top_logprobs: list[float] = field(default_factory=list)
    text_offsets: list[int] = field(default_factory=list)

    def head(self, count: int) -> Self:
        """Those of the first `count` tokens."""
        tops = count * self.top_count
        return type(self)(
            self.logprobs[:count],
            self.ranks[:count],
            self.top_count,
            self.top_token_ids[:tops],
            self.top_logprobs[:tops],
            self.text_offsets[:count],
        )

    def extend(self, other: Logprobs) -> None:
        """Add those of the tokens that follow. All runs of a stream have the same `top_count`."""
        self.top_count = other.top_count
        self.logprobs += other.logprobs
        self.ranks += other.ranks
        self.top_token_ids += other.top_token_ids
        self.top_logprobs += other.top_logprobs
        self.text_offsets += other.text_offsets


@dataclass(frozen=True, slots=True)
class TextLogprobs:
    """Log probabilities with the bytes of each token and of each alternative, in the order of the columns.

    A part of a character has its own bytes alone; a special token has those of its name.
    """

    numbers: Logprobs
    token_bytes: list[bytes]
    top_token_bytes: list[bytes]


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """Those of a prompt: its first token has bytes but no log probability; `rest` are the tokens after it."""

    first_token_bytes: bytes
    rest: TextLogprobs


def with_bytes(table: TokenTable, token_ids: Sequence[int], logprobs: Logprobs) -> TextLogprobs:
    """Add the tokens' bytes. Ids that the tokenizer does not know have none."""
    known = table.token_bytes
    return TextLogprobs(
        logprobs,
        [known.get(token_id, b"") for token_id in token_ids],
        [known.get(token_id, b"") for token_id in logprobs.top_token_ids],
    )
