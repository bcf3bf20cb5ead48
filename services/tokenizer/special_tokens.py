"""Named special tokens of a model: the texts that templates print, and the ids that end an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from services.tokenizer.token_table import TokenTable
from services.tokenizer.tokenizer_files import (
    GENERATION_CONFIG,
    MODEL_CONFIG,
    SPECIAL_TOKENS_MAP,
    TOKENIZER_CONFIG,
    TokenizerFiles,
    TokenizerFilesError,
)


def json_object(files: TokenizerFiles, name: str) -> dict[str, object]:
    """A file's JSON object; empty where the file is not there.

    Raises:
        TokenizerFilesError: the file is no JSON object.
    """
    text = files.text(name)
    if text is None:
        return {}
    try:
        document = json.loads(text)
    except ValueError as error:
        raise TokenizerFilesError(f"{name} is not JSON: {error}; replace the file") from error
    if not isinstance(document, dict):
        raise TokenizerFilesError(f"{name} is not a JSON object; replace the file")
    return document


def special_token_texts(files: TokenizerFiles) -> dict[str, str]:
    """Text by name (`bos_token`, `eos_token`, …), as transformers passes them to chat templates; unset ones are absent.

    tokenizer_config.json goes before the older special_tokens_map.json.
    """
    texts = {}
    for file_name in (SPECIAL_TOKENS_MAP, TOKENIZER_CONFIG):
        for name, value in json_object(files, file_name).items():
            content = value.get("content") if isinstance(value, Mapping) else value
            if name.endswith("_token") and isinstance(content, str):
                texts[name] = content
    return texts


def eos_token_ids(files: TokenizerFiles, table: TokenTable) -> frozenset[int]:
    """Ids that end an answer: those of generation_config.json (else config.json), and the tokenizer's own EOS."""
    ids = _ids(json_object(files, GENERATION_CONFIG)) or _ids(json_object(files, MODEL_CONFIG))
    eos = special_token_texts(files).get("eos_token")
    return ids | {token.id for token in table.added_tokens if token.content == eos}


def _ids(config: Mapping[str, object]) -> frozenset[int]:
    value = config.get("eos_token_id")
    found = value if isinstance(value, list) else [value]
    return frozenset(token_id for token_id in found if isinstance(token_id, int))
