"""Incremental decoding: token ids in, text out, the same text for every split.

The text is that of the reference tokenizer's one-shot decode, with one exception. Where a run of
byte-fallback tokens is not UTF-8, the reference replaces every byte of the run, even those of whole
characters before the fault, so nothing of a run could be shown before its end. Here whole characters
count and each other byte becomes one U+FFFD, as SentencePiece itself decodes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from tokenizers import Tokenizer

from services.tokenizer.token_table import DecoderKind, TokenTable

_REPLACEMENT = "\ufffd"
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_NOTHING: frozenset[int] = frozenset()

# Tokens of context that the reference decoder sees before the new ones: enough to know that it is not at the start.
_WINDOW = 6
# A code point has at most four bytes, so at most four tokens.
_LONGEST_SPLIT = 4


class IncrementalDecoder(Protocol):
    """Turns one generation's token ids into text as they come."""

    def feed(self, token_ids: Sequence[int]) -> str:
        """Text that is certain after these ids; "" while they only begin a code point."""

    def flush(self) -> str:
        """The rest at the end of the stream: U+FFFD where it ended inside a code point, else mostly ""."""

    @property
    def inside_character(self) -> bool:
        """Whether the ids so far hold the begin of a character that is not complete."""


def decoder_for(
    table: TokenTable,
    reference: Tokenizer | None,
    prompt_token_ids: Sequence[int],
    skip_special_tokens: bool,
) -> IncrementalDecoder:
    """A decoder for the tokens generated after a prompt. No text of the prompt ever comes out of it.

    Args:
        table: the model's table.
        reference: the reference tokenizer; needed only where `table.kind` is OTHER, and never changed.
        prompt_token_ids: decide whether the output starts a text (where SentencePiece drops a space).
        skip_special_tokens: True hides special tokens.

    Raises:
        ValueError: `table.kind` is OTHER and no reference was given.
    """
    if table.kind is DecoderKind.BYTE_LEVEL:
        return _ByteLevelDecoder(table, skip_special_tokens)
    if table.kind is DecoderKind.BYTE_FALLBACK:
        return _ByteFallbackDecoder(table, prompt_token_ids, skip_special_tokens)
    if reference is None:
        raise ValueError("this tokenizer's decoder is known to the reference tokenizer only; pass it")
    return _WindowedDecoder(table, reference, prompt_token_ids, skip_special_tokens)


def _whole_text(texts: Sequence[str | None], token_ids: Sequence[int]) -> str | None:
    """The text of tokens that are whole text by themselves, or None: one is a part of a code point, or no token."""
    try:
        if len(token_ids) == 1:
            return texts[token_ids[0]]
        return "".join(map(texts.__getitem__, token_ids))  # type: ignore[arg-type]  # None raises TypeError
    except (IndexError, TypeError):
        return None


class _ByteLevelDecoder:
    """Byte-level BPE: the tokens' bytes are one UTF-8 stream.

    Invalid bytes become one U+FFFD for each maximal part of a code point (Unicode's recommended practice, which the
    reference follows too).
    """

    __slots__ = ("_bytes", "_hidden", "_pending", "_texts", "_utf8")

    def __init__(self, table: TokenTable, skip_special_tokens: bool) -> None:
        self._texts = table.texts_without_special if skip_special_tokens else table.texts
        self._bytes = table.token_bytes
        self._hidden = table.special_ids if skip_special_tokens else _NOTHING
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = False

    def feed(self, token_ids: Sequence[int]) -> str:
        if not self._pending and (text := _whole_text(self._texts, token_ids)) is not None:
            return text
        text = self._utf8.decode(
            b"".join([self._bytes.get(token_id, b"") for token_id in token_ids if token_id not in self._hidden])
        )
        self._pending = self._utf8.getstate()[0] != b""
        return text

    @property
    def inside_character(self) -> bool:
        return self._pending

    def flush(self) -> str:
        self._pending = False
        return self._utf8.decode(b"", final=True)


class _ByteFallbackDecoder:
    """SentencePiece with byte fallback: text tokens, and runs of single bytes between them."""

    __slots__ = ("_bytes", "_hidden", "_pending", "_strip", "_texts", "_utf8")

    def __init__(self, table: TokenTable, prompt_token_ids: Iterable[int], skip_special_tokens: bool) -> None:
        self._texts = table.texts_without_special if skip_special_tokens else table.texts
        self._bytes = table.token_bytes
        self._hidden = table.special_ids if skip_special_tokens else _NOTHING
        # Escaping gives one character for each bad byte, which "replace" does not.
        self._utf8 = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._pending = False
        # The space that starts a text is dropped; after a prompt with text the output starts none.
        continues = any(self._texts[token_id] != "" for token_id in prompt_token_ids if token_id in self._bytes)
        self._strip = 0 if continues else table.strip_left

    def feed(self, token_ids: Sequence[int]) -> str:
        text = None if self._pending else _whole_text(self._texts, token_ids)
        if text is None:
            text = self._feed_bytes(token_ids)
        return self._strip_start(text) if self._strip and text else text

    @property
    def inside_character(self) -> bool:
        return self._pending

    def flush(self) -> str:
        text = self._end_of_bytes()
        return self._strip_start(text) if self._strip else text

    def _feed_bytes(self, token_ids: Sequence[int]) -> str:
        pieces = []
        for token_id in token_ids:
            if token_id in self._hidden:
                continue
            text = self._texts[token_id] if token_id < len(self._texts) else None
            if text is None:
                text = self._unescaped(self._utf8.decode(self._bytes.get(token_id, b"")))
                self._pending = self._utf8.getstate()[0] != b""
            elif self._pending:
                text = self._end_of_bytes() + text
            pieces.append(text)
        return "".join(pieces)

    def _end_of_bytes(self) -> str:
        self._pending = False
        return self._unescaped(self._utf8.decode(b"", final=True))

    def _strip_start(self, text: str) -> str:
        rest = text.lstrip(" ")
        spaces = len(text) - len(rest)
        kept = text[min(spaces, self._strip) :]
        self._strip = 0 if rest else self._strip - min(spaces, self._strip)
        return kept

    @staticmethod
    def _unescaped(text: str) -> str:
        return text if text.isascii() else _ESCAPED_BYTE.sub(_REPLACEMENT, text)


class _WindowedDecoder:
    """Any other decoder: the reference decodes the new tokens after a few earlier ones, whose text is cut off.

    Exact for decoders that look at the position in a text and at neighbouring tokens (WordPiece, Metaspace, none).
    A decoder that changes text it has already given cannot be streamed, and its later text wins.
    """

    __slots__ = ("_context", "_hidden", "_known", "_new", "_reference")

    def __init__(
        self, table: TokenTable, reference: Tokenizer, prompt_token_ids: Sequence[int], skip_special_tokens: bool
    ) -> None:
        self._reference = reference
        self._known = table.token_bytes
        self._hidden = table.special_ids if skip_special_tokens else _NOTHING
        tail = self._shown(prompt_token_ids)[-(_WINDOW + _LONGEST_SPLIT) :]
        self._context = self._whole_end(tail)[-_WINDOW:]
        self._new: list[int] = []

    def feed(self, token_ids: Sequence[int]) -> str:
        waiting = len(self._new)
        self._new += self._shown(token_ids)
        if len(self._new) == waiting:
            return ""
        return self._text(may_wait=True)

    @property
    def inside_character(self) -> bool:
        return bool(self._new)

    def flush(self) -> str:
        return self._text(may_wait=False) if self._new else ""

    def _text(self, may_wait: bool) -> str:
        context, before = self._readable_context()
        held = self._unfinished(self._new) if may_wait else 0
        if not held:
            text = self._decode(context + self._new)[len(before) :]
            if may_wait and text.endswith(_REPLACEMENT) and not self._is_part(self._new[-1]):
                held = self._held_by_text(context, before)
        if held >= len(self._new):
            return ""
        end = len(self._new) - held
        if held:
            text = self._decode(context + self._new[:end])[len(before) :]
        self._context = (context + self._new[:end])[-_WINDOW:]
        self._new = self._new[end:]
        return text

    def _readable_context(self) -> tuple[list[int], str]:
        """The context and its text. A beginning inside a character spoils a whole run of bytes for some decoders, so it
        is cut off; where U+FFFD is all that there is, it was written.
        """
        begin = next((at for at, one in enumerate(self._context) if not self._continues(one)), 0)
        whole = context = self._context[begin:]
        before = whole_text = self._decode(whole)
        while before.startswith(_REPLACEMENT):
            context = context[1:]
            before = self._decode(context)
        return (context, before) if context else (whole, whole_text)

    def _held_by_text(self, context: list[int], before: str) -> int:
        """Tokens to wait with, for decoders that know bytes in a way of their own: U+FFFD at the end may be the first
        part of a character.
        """
        for held in range(1, _LONGEST_SPLIT):
            if held >= len(self._new):
                return held
            if not self._decode(context + self._new[:-held])[len(before) :].endswith(_REPLACEMENT):
                return held
        return 0

    def _unfinished(self, token_ids: Sequence[int]) -> int:
        """Number of single bytes at the end that begin a character."""
        for count, token_id in enumerate(reversed(token_ids[-_LONGEST_SPLIT + 1 :]), 1):
            if not self._is_part(token_id):
                return 0
            if not self._continues(token_id):
                first = self._known[token_id][0]
                # https://www.unicode.org/versions/latest/core-spec/chapter-3/#G27506 (well-formed UTF-8)
                length = 2 if 0xC2 <= first < 0xE0 else 3 if 0xE0 <= first < 0xF0 else 4 if 0xF0 <= first < 0xF5 else 1
                return count if count < length else 0
        return 0

    def _is_part(self, token_id: int) -> bool:
        """Whether the token is one byte of a character of several."""
        content = self._known[token_id]
        return len(content) == 1 and content >= b"\x80"

    def _continues(self, token_id: int) -> bool:
        return self._is_part(token_id) and self._known[token_id] < b"\xc0"

    def _whole_end(self, token_ids: list[int]) -> list[int]:
        """The ids without those at the end that are no whole character: the output must not complete their text."""
        if token_ids and self._is_part(token_ids[-1]):
            return token_ids[: len(token_ids) - self._unfinished(token_ids)] or token_ids
        end = len(token_ids)
        while end and self._decode(token_ids[:end]).endswith(_REPLACEMENT):
            end -= 1
        return token_ids[:end] or token_ids

    def _decode(self, token_ids: list[int]) -> str:
        return self._reference.decode(token_ids, skip_special_tokens=False)

    def _shown(self, token_ids: Sequence[int]) -> list[int]:
        return [token_id for token_id in token_ids if token_id in self._known and token_id not in self._hidden]
