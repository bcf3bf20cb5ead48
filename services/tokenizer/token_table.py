"""Token id -> text tables, made from tokenizer.json alone."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from services.tokenizer.tokenizer_files import TokenizerFilesError

_SENTENCEPIECE_SPACE = "\u2581"
# Bounds the memory of tables by id. The largest vocabularies have some 2^18 tokens.
_HIGHEST_ID = 2**24


class DecoderKind(Enum):
    """How a tokenizer turns tokens back into text."""

    BYTE_LEVEL = "byte-level"
    """Each character of a token stands for a byte (GPT-2 and its heirs)."""
    BYTE_FALLBACK = "byte-fallback"
    """SentencePiece: `▁` is a space, and tokens `<0x00>` … `<0xFF>` are single bytes."""
    OTHER = "other"
    """Anything else (WordPiece, Metaspace, none): only the reference decoder knows."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """An entry of tokenizer.json's `added_tokens`, matched in text before the model sees it.

    `special` ones are control tokens that `skip_special_tokens` hides. `lstrip` and `rstrip` say that
    the match takes the white space on that side along.
    """

    id: int
    content: str
    special: bool
    lstrip: bool
    rstrip: bool


@dataclass(frozen=True, slots=True)
class TokenTable:
    """What each token id stands for.

    Attributes:
        kind: the decoder that the table follows.
        token_bytes: bytes by id (of the token's own string where `kind` is OTHER). Ids that are not in it
            do not exist and decode to nothing, as in the reference tokenizer.
        texts: text by id, for the tokens that are whole text by themselves; None for ids that do not exist and for
            a token that holds a part of a code point, which is only in `token_bytes`. Empty where `kind` is OTHER.
            Read once a token of each stream, mostly out of cold memory, where a dictionary takes twice as long.
        texts_without_special: `texts`, with "" for special tokens.
        added_tokens: the entries of `added_tokens`, in file order.
        special_ids: ids of special added tokens.
        strip_left: how many leading spaces the decoder takes off the start of a text.
    """

    kind: DecoderKind
    token_bytes: Mapping[int, bytes]
    texts: Sequence[str | None]
    texts_without_special: Sequence[str | None]
    added_tokens: tuple[AddedToken, ...]
    special_ids: frozenset[int]
    strip_left: int

    @classmethod
    def from_tokenizer_json(cls, content: bytes) -> TokenTable:
        """Read the table out of a tokenizer.json.

        Raises:
            TokenizerFilesError: the file is no JSON, lacks the model, its vocabulary or a token's id, or has an id
                that is negative or beyond all measure.
        """
        try:
            document = json.loads(content)
            added = tuple(_added_token(entry) for entry in document.get("added_tokens") or ())
            tokens = _vocabulary(document["model"]["vocab"])
            tokens.update((token.id, token.content) for token in added)
            _check_ids(tokens)
            kind, strip_left = _decoder_kind(document.get("decoder"))
            token_bytes, texts = _TABLES[kind](tokens)
            if kind is DecoderKind.OTHER and '"ByteFallback"' in json.dumps(document.get("decoder")):
                token_bytes |= {one: byte for one, token in tokens.items() if (byte := _fallback_byte(token))}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TokenizerFilesError(f"tokenizer.json cannot be read: {error!r}; save the tokenizer anew") from error
        special_ids = frozenset(token.id for token in added if token.special)
        hidden = dict.fromkeys(special_ids, "") if texts else {}
        return cls(kind, token_bytes, texts, _changed(texts, hidden), added, special_ids, strip_left)

    @property
    def vocab_size(self) -> int:
        """One more than the highest token id. Ids may have gaps, and a model's own table may be larger."""
        return max(self.token_bytes, default=-1) + 1

    def showing(self, contents: Collection[str]) -> TokenTable:
        """The same table with these added tokens not special, so that they are always shown."""
        shown = {token.id for token in self.added_tokens if token.special and token.content in contents}
        if not shown:
            return self
        texts = {token_id: self.texts[token_id] for token_id in shown} if self.texts else {}
        return replace(
            self,
            special_ids=self.special_ids - shown,
            texts_without_special=_changed(self.texts_without_special, texts),
        )

    @property
    def added_ids(self) -> frozenset[int]:
        """Ids of tokens that are added but not special, such as `<think>`; they are always shown."""
        return frozenset(token.id for token in self.added_tokens) - self.special_ids


def _added_token(entry: Mapping[str, object]) -> AddedToken:
    token_id, content = entry["id"], entry["content"]
    if not isinstance(token_id, int) or not isinstance(content, str):
        raise TypeError("an added token needs an integer id and a content string")
    return AddedToken(
        token_id, content, bool(entry.get("special")), bool(entry.get("lstrip")), bool(entry.get("rstrip"))
    )


def _vocabulary(vocab: Mapping[str, int] | list[tuple[str, float]]) -> dict[int, str]:
    if isinstance(vocab, list):  # Unigram: the position is the id, beside each token stands its score.
        return {token_id: token for token_id, (token, _) in enumerate(vocab)}
    return {token_id: token for token, token_id in vocab.items()}


def _check_ids(token_ids: Collection[int]) -> None:
    if token_ids and not 0 <= min(token_ids) <= max(token_ids) <= _HIGHEST_ID:
        raise ValueError(f"a token's id is not from 0 to {_HIGHEST_ID}")


def _decoder_kind(decoder: Mapping[str, object] | None) -> tuple[DecoderKind, int]:
    """The kind, and the number of leading spaces that the decoder strips."""
    if decoder is None:
        return DecoderKind.OTHER, 0
    if decoder["type"] == "ByteLevel":
        return DecoderKind.BYTE_LEVEL, 0
    steps = decoder.get("decoders")
    if decoder["type"] != "Sequence" or not isinstance(steps, list):
        return DecoderKind.OTHER, 0
    if [step["type"] for step in steps] == ["ByteLevel"]:
        return DecoderKind.BYTE_LEVEL, 0
    replace = {"type": "Replace", "pattern": {"String": _SENTENCEPIECE_SPACE}, "content": " "}
    if steps[:3] != [replace, {"type": "ByteFallback"}, {"type": "Fuse"}]:
        return DecoderKind.OTHER, 0
    match steps[3:]:
        case []:
            return DecoderKind.BYTE_FALLBACK, 0
        case [{"type": "Strip", "content": " ", "start": int(start), "stop": 0}]:
            return DecoderKind.BYTE_FALLBACK, start
    return DecoderKind.OTHER, 0


def byte_alphabet() -> dict[str, int]:
    """Character -> byte, as GPT-2 set it: printable Latin-1 stands for itself, the rest from U+0100 upwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(0x100 + position): byte for position, byte in enumerate(others)})
    return alphabet


def _byte_level(tokens: Mapping[int, str]) -> tuple[dict[int, bytes], list[str | None]]:
    alphabet = byte_alphabet()
    to_latin1 = str.maketrans({char: chr(byte) for char, byte in alphabet.items()})
    letters = alphabet.keys()
    # The reference decides for the token as a whole: one character outside the alphabet makes all of it plain text.
    token_bytes = {
        token_id: token.translate(to_latin1).encode("latin-1") if letters >= set(token) else token.encode()
        for token_id, token in tokens.items()
    }
    return token_bytes, _whole_texts(token_bytes)


def _byte_fallback(tokens: Mapping[int, str]) -> tuple[dict[int, bytes], list[str | None]]:
    token_bytes = {
        token_id: _fallback_byte(token) or token.replace(_SENTENCEPIECE_SPACE, " ").encode()
        for token_id, token in tokens.items()
    }
    return token_bytes, _whole_texts(token_bytes)


def _fallback_byte(token: str) -> bytes | None:
    if len(token) != 6 or not token.startswith("<0x") or not token.endswith(">"):
        return None
    try:
        return bytes.fromhex(token[3:5])
    except ValueError:
        return None


def _other(tokens: Mapping[int, str]) -> tuple[dict[int, bytes], list[str | None]]:
    return {token_id: token.encode() for token_id, token in tokens.items()}, []


def _whole_texts(token_bytes: Mapping[int, bytes]) -> list[str | None]:
    texts: list[str | None] = [None] * (max(token_bytes, default=-1) + 1)
    for token_id, content in token_bytes.items():
        try:
            texts[token_id] = content.decode()
        except UnicodeDecodeError:
            continue
    return texts


def _changed(texts: Sequence[str | None], changes: Mapping[int, str | None]) -> list[str | None]:
    changed = list(texts)
    for token_id, text in changes.items():
        changed[token_id] = text
    return changed


_TABLES = {
    DecoderKind.BYTE_LEVEL: _byte_level,
    DecoderKind.BYTE_FALLBACK: _byte_fallback,
    DecoderKind.OTHER: _other,
}
