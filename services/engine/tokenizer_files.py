"""The files that make a model's tokenizer, as they are sent to tokenizer services."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.engine.port import EngineDead

# What text tiers need of a model's directory. Weights are never among them.
FILE_NAMES = (
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tekken.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)


@dataclass(frozen=True, slots=True)
class TokenizerFile:
    """One file."""

    name: str
    content: bytes
    sha256: str


def read_tokenizer_files(directory: Path) -> list[TokenizerFile]:
    """Read the tokenizer files of a model's directory, in order of name.

    Raises:
        EngineDead: there is no tokenizer in it.
    """
    files = []
    for name in FILE_NAMES:
        path = directory / name
        if path.is_file():
            content = path.read_bytes()
            files.append(TokenizerFile(name, content, hashlib.sha256(content).hexdigest()))
    if not any(file.name in ("tokenizer.json", "tokenizer.model", "tekken.json") for file in files):
        raise EngineDead(f"{directory} holds no tokenizer; put the model's tokenizer.json there")
    return files


def tokenizer_digest(files: Sequence[TokenizerFile]) -> str:
    """sha256 in hex over names and contents, in order of name."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.sha256}\n".encode())
    return digest.hexdigest()
