"""Fill in the middle: a prompt of the text before a gap and the text after it.

Each family of code models was trained with control tokens of its own around the two; which a model has is seen by its
vocabulary. Qwen2.5-Coder's technical report and CodeGemma's (section 2), StarCoder's paper (arXiv 2305.06161),
DeepSeek-Coder's (arXiv 2401.14196), Code Llama's (arXiv 2308.12950) and Mistral's reference tokenizer for Codestral
give the orders below.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.chassis.errors import InvalidRequest
from services.tokenizer.segment import Segment
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.token_table import AddedToken, DecoderKind

# Any character that no token joins with a neighbour.
_MASK = "\u263a"


@dataclass(frozen=True, slots=True)
class FillFormat:
    """The control tokens of one family: prefix token, prefix, suffix token, suffix, middle token.

    Without a middle token it is suffix token, suffix, prefix token, prefix: the model goes on after the prefix.
    `ends` are tokens by which a model of the family says that the gap is filled, beside its end token.
    """

    prefix: str
    suffix: str
    middle: str | None
    ends: tuple[str, ...] = ()

    @property
    def tokens(self) -> list[str]:
        """All control tokens."""
        return [token for token in (self.prefix, self.suffix, self.middle) if token is not None]


FORMATS = (
    # Qwen-Coder, CodeGemma.
    FillFormat(
        "<|fim_prefix|>",
        "<|fim_suffix|>",
        "<|fim_middle|>",
        ("<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<|file_separator|>"),
    ),
    # StarCoder; SantaCoder.
    FillFormat("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    FillFormat("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    # DeepSeek-Coder.
    FillFormat("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    # Code Llama.
    FillFormat("▁<PRE>", "▁<SUF>", "▁<MID>", ("▁<EOT>",)),
    # Codestral.
    FillFormat("[PREFIX]", "[SUFFIX]", None),
)


def fill_format(added_tokens: Iterable[AddedToken]) -> FillFormat | None:
    """The format whose control tokens a vocabulary has, if it has one's."""
    contents = {token.content for token in added_tokens}
    return next((each for each in FORMATS if contents.issuperset(each.tokens)), None)


def end_token_ids(added_tokens: Iterable[AddedToken]) -> list[int]:
    """The ids of those of the format's `ends` that a vocabulary has. None without a format."""
    added = list(added_tokens)
    layout = fill_format(added)
    return [] if layout is None else [token.id for token in added if token.content in layout.ends]


@dataclass(frozen=True, slots=True)
class FillInTheMiddlePrompt:
    """Text before and after a gap. Control tokens that they spell stay text."""

    text: str
    suffix: str
    add_special_tokens: bool

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text) + len(self.suffix)

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """By the characters."""
        return tokenizer.least_tokens(self.size)

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Encode both, in the model's own order.

        Raises:
            InvalidRequest: the model has no control tokens for it.
        """
        added = tokenizer.table.added_tokens
        layout = fill_format(added)
        if layout is None:
            raise InvalidRequest(
                "suffix needs a model that fills in the middle, but this model's vocabulary has no tokens for it;"
                " leave suffix out",
                param="suffix",
                reason="NO_FILL_IN_THE_MIDDLE",
            )
        control = {token.content: token.id for token in added}
        spelled = [token.content for token in added if token.special or token.content in layout.tokens]
        prefix_ids = [control[layout.prefix], *_encoded(tokenizer, self.text, spelled)]
        suffix_ids = [control[layout.suffix], *_without_first_space(tokenizer, self.suffix, spelled)]
        # What the tokenizer puts before a text, mostly BOS.
        begin = tokenizer.encode("") if self.add_special_tokens else []
        if layout.middle is None:
            return begin + suffix_ids + prefix_ids
        return begin + prefix_ids + suffix_ids + [control[layout.middle]]


def _encoded(tokenizer: TextTokenizer, text: str, spelled: list[str]) -> list[int]:
    if not text:
        return []
    return tokenizer.encode_segments([Segment(text, any(token in text for token in spelled))])


def _without_first_space(tokenizer: TextTokenizer, text: str, spelled: list[str]) -> list[int]:
    # SentencePiece begins each text with a space, which the text after a gap does not have.
    if tokenizer.table.kind is not DecoderKind.BYTE_FALLBACK or not text:
        return _encoded(tokenizer, text, spelled)
    return _encoded(tokenizer, _MASK + text, spelled)[len(_encoded(tokenizer, _MASK, spelled)) :]
