from __future__ import annotations

import json

import pytest

from services.tokenizer.special_tokens import eos_token_ids, special_token_texts
from services.tokenizer.token_table import TokenTable
from services.tokenizer.tokenizer_files import TokenizerFiles, TokenizerFilesError

_TOKENIZER_JSON = json.dumps(
    {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1, "content": "<e>", "special": True}]}
).encode()


def files(**documents: object) -> TokenizerFiles:
    """Files of these JSON documents beside a small tokenizer.json."""
    contents = {f"{name}.json": json.dumps(document).encode() for name, document in documents.items()}
    return TokenizerFiles({"tokenizer.json": _TOKENIZER_JSON, **contents})


def test_named_texts_are_read_from_both_files() -> None:
    """Texts and token objects count, tokenizer_config.json goes first, and unset names are absent."""
    found = special_token_texts(
        files(
            special_tokens_map={"bos_token": "<old>", "unk_token": "<u>"},
            tokenizer_config={"bos_token": {"content": "<b>"}, "pad_token": None, "add_bos_token": True},
        )
    )
    assert found == {"bos_token": "<b>", "unk_token": "<u>"}


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ({"generation_config": {"eos_token_id": [5, 6]}, "config": {"eos_token_id": 7}}, {5, 6}),
        ({"config": {"eos_token_id": 7}}, {7}),
        ({"config": {"eos_token_id": 7}, "tokenizer_config": {"eos_token": "<e>"}}, {7, 1}),
        ({"config": {"eos_token_id": None}}, set()),
        ({}, set()),
    ],
)
def test_the_ids_that_end_an_answer(documents: dict[str, object], expected: set[int]) -> None:
    """generation_config.json goes before config.json, and the tokenizer's own EOS is always among them."""
    assert eos_token_ids(files(**documents), TokenTable.from_tokenizer_json(_TOKENIZER_JSON)) == expected


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_a_damaged_configuration_is_refused(content: bytes) -> None:
    """The file is named."""
    damaged = TokenizerFiles({"tokenizer.json": b"{}", "tokenizer_config.json": content})
    with pytest.raises(TokenizerFilesError, match=r"tokenizer_config\.json is not"):
        special_token_texts(damaged)
