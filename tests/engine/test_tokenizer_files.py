from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from services.engine.port import EngineDead
from services.engine.tokenizer_files import FILE_NAMES, read_tokenizer_files, tokenizer_digest


def write(directory: Path, **contents: bytes) -> Path:
    """Files by name, with `_` for the dot."""
    for name, content in contents.items():
        (directory / ".".join(name.rsplit("_", 1))).write_bytes(content)
    return directory


def test_only_tokenizer_files_are_read_in_order_of_name(tmp_path: Path) -> None:
    """Weights, other files and directories stay where they are; the rest comes in order with its sha256."""
    write(tmp_path, tokenizer_json=b"{}", config_json=b"{ }", model_safetensors=b"weights", README_md=b"x")
    (tmp_path / "vocab.json").mkdir()
    files = read_tokenizer_files(tmp_path)
    assert [(file.name, file.content) for file in files] == [("config.json", b"{ }"), ("tokenizer.json", b"{}")]
    assert all(file.sha256 == hashlib.sha256(file.content).hexdigest() for file in files)
    assert list(FILE_NAMES) == sorted(FILE_NAMES)


@pytest.mark.parametrize("name", ["tokenizer_json", "tokenizer_model", "tekken_json"])
def test_each_kind_of_tokenizer_suffices(tmp_path: Path, name: str) -> None:
    """Any one of the known tokenizer formats is enough."""
    assert len(read_tokenizer_files(write(tmp_path, **{name: b"x"}))) == 1


def test_directory_without_tokenizer_is_refused(tmp_path: Path) -> None:
    """A directory that holds other files alone is refused by its name, as is one that does not exist."""
    write(tmp_path, config_json=b"{}")
    for directory in (tmp_path, tmp_path / "none"):
        with pytest.raises(EngineDead, match=str(directory)):
            read_tokenizer_files(directory)


def test_digest_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    """Equal files in two places have equal digests; another name or byte makes another."""
    digests = []
    for number, contents in enumerate(
        [
            {"tokenizer_json": b"{}", "vocab_json": b"1"},
            {"tokenizer_json": b"{}", "vocab_json": b"1"},
            {"tokenizer_json": b"{}", "vocab_json": b"2"},
            {"tokenizer_json": b"{}", "merges_txt": b"1"},
            {"tokenizer_json": b"{}"},
        ]
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        digests.append(tokenizer_digest(read_tokenizer_files(write(directory, **contents))))
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4
