from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, decoders, models

from services.tokenizer.token_table import DecoderKind, TokenTable, byte_alphabet
from services.tokenizer.tokenizer_files import TokenizerFilesError
from tests.tokenizer.conftest import ReferenceOf, TokenizerOf


def _table(decoder: object, added: list[dict[str, object]] | None = None, vocab: object = None) -> TokenTable:
    document = {"model": {"vocab": vocab or {"a": 0}}, "added_tokens": added or [], "decoder": decoder}
    return TokenTable.from_tokenizer_json(json.dumps(document).encode())


_REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
_FALLBACK = [_REPLACE, {"type": "ByteFallback"}, {"type": "Fuse"}]


@pytest.mark.parametrize(
    ("decoder", "kind", "strip_left"),
    [
        ({"type": "ByteLevel"}, DecoderKind.BYTE_LEVEL, 0),
        ({"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}, DecoderKind.BYTE_LEVEL, 0),
        ({"type": "Sequence", "decoders": _FALLBACK}, DecoderKind.BYTE_FALLBACK, 0),
        (
            {"type": "Sequence", "decoders": [*_FALLBACK, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
            DecoderKind.BYTE_FALLBACK,
            1,
        ),
        (
            {"type": "Sequence", "decoders": [*_FALLBACK, {"type": "Strip", "content": " ", "start": 1, "stop": 1}]},
            DecoderKind.OTHER,
            0,
        ),
        ({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}, DecoderKind.OTHER, 0),
        ({"type": "WordPiece", "prefix": "##", "cleanup": True}, DecoderKind.OTHER, 0),
        (None, DecoderKind.OTHER, 0),
    ],
)
def test_the_kind_follows_the_decoder_section(decoder: object, kind: DecoderKind, strip_left: int) -> None:
    """Only decoders that the tables reproduce exactly are decoded by table."""
    table = _table(decoder)
    assert (table.kind, table.strip_left) == (kind, strip_left)


def test_the_byte_alphabet_is_that_of_the_reference() -> None:
    """Each character of the reference's byte-level decoder stands for the same byte here."""
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    reference = Tokenizer(models.WordLevel(dict.fromkeys("x", 0), unk_token="x"))
    reference.decoder = decoders.ByteLevel()
    for character, byte in alphabet.items():
        assert reference.decoder.decode([character]) == bytes([byte]).decode("utf-8", "replace")


@pytest.mark.parametrize("name", ["qwen3", "llama3_1", "mistral_nemo", "deepseek_v3", "llama2", "gemma3"])
def test_each_token_alone_reads_as_the_reference_reads_it(
    name: str, tokenizer_of: TokenizerOf, reference_of: ReferenceOf
) -> None:
    """For every id of real vocabularies, the table's bytes decode to the reference's text."""
    table, reference = tokenizer_of(name).table, reference_of(name)
    for token_id in range(table.vocab_size):
        text = table.token_bytes.get(token_id, b"").decode("utf-8", "replace")
        if table.strip_left and text.startswith(" "):
            text = text[1:]
        assert text == reference.decode([token_id], skip_special_tokens=False), token_id


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v3", "gemma3"])
def test_added_tokens_are_special_or_not_as_the_reference_says(
    name: str, tokenizer_of: TokenizerOf, reference_of: ReferenceOf
) -> None:
    """Special tokens and merely added ones are the reference's."""
    table = tokenizer_of(name).table
    added = reference_of(name).get_added_tokens_decoder()
    assert table.special_ids == {token_id for token_id, token in added.items() if token.special}
    assert table.added_ids == {token_id for token_id, token in added.items() if not token.special}
    assert all(table.texts_without_special[token_id] == "" for token_id in table.special_ids)
    assert all(table.texts_without_special[token_id] for token_id in table.added_ids)


def test_an_added_token_outside_the_alphabet_is_raw_text() -> None:
    """A space is no letter of the byte alphabet, so the whole added token is its own UTF-8."""
    table = _table({"type": "ByteLevel"}, [{"id": 1, "content": "é x", "special": False}])
    assert table.token_bytes[1] == "é x".encode()


def test_a_logprob_shows_the_bytes_of_a_split_character(tokenizer_of: TokenizerOf) -> None:
    """Each token has its own bytes, also where it is no whole character."""
    token_bytes = tokenizer_of("qwen3").table.token_bytes
    assert [list(token_bytes[token_id]) for token_id in (11162, 99, 247)] == [[32, 240, 159], [166], [153]]


def test_the_vocabulary_reaches_to_the_highest_id() -> None:
    """Added tokens count, and gaps do not make the vocabulary smaller."""
    assert _table({"type": "ByteLevel"}, [{"id": 7, "content": "<x>", "special": True}]).vocab_size == 8


def test_a_unigram_vocabulary_is_numbered_by_position() -> None:
    """Unigram models list their tokens with scores instead of ids."""
    table = _table({"type": "Metaspace"}, vocab=[["a", -1.0], ["b", -2.0]])
    assert table.token_bytes == {0: b"a", 1: b"b"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"model": {}}',
        b'{"model": {"vocab": {"\\ud800": 0}}}',
        b'{"model": {"vocab": {"a": -1}}}',
        b'{"model": {"vocab": {"a": 999999999999}}}',
    ],
)
def test_a_damaged_tokenizer_json_is_refused(content: bytes) -> None:
    """What cannot be read is named, whatever is wrong with it."""
    with pytest.raises(TokenizerFilesError, match=r"tokenizer\.json cannot be read"):
        TokenTable.from_tokenizer_json(content)
