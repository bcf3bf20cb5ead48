from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from services.tokenizer.tokenizer_files import TokenizerFiles, TokenizerFilesError


def test_a_directory_gives_the_known_files_and_no_others(tmp_path: Path) -> None:
    """Weights and other files beside the tokenizer are never read."""
    for name in ("tokenizer.json", "config.json", "chat_template.jinja", "model.safetensors", "README.md"):
        (tmp_path / name).write_text(name)
    files = TokenizerFiles.from_directory(tmp_path)
    assert set(files.contents) == {"tokenizer.json", "config.json", "chat_template.jinja"}
    assert files.text("config.json") == "config.json"
    assert files.text("tokenizer_config.json") is None


def test_a_directory_without_tokenizer_json_is_refused_by_name(tmp_path: Path) -> None:
    """The error says what is missing and what was there instead."""
    (tmp_path / "tokenizer.model").write_bytes(b"sentencepiece")
    with pytest.raises(TokenizerFilesError, match=r"tokenizer\.json is missing \(found tokenizer\.model\)"):
        TokenizerFiles.from_directory(tmp_path)


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    """A wrong path is told apart from a directory without tokenizer."""
    with pytest.raises(TokenizerFilesError, match="is not a directory"):
        TokenizerFiles.from_directory(tmp_path / "absent")


def test_an_unknown_name_is_refused() -> None:
    """Names come over the network; only known ones are kept."""
    with pytest.raises(TokenizerFilesError, match=r"'\.\./x' is no tokenizer file"):
        TokenizerFiles({"tokenizer.json": b"{}", "../x": b""})


def test_the_contents_cannot_change_afterwards() -> None:
    """Changing the mapping that was passed in does not change the checked files."""
    contents = {"tokenizer.json": b"{}"}
    files = TokenizerFiles(contents)
    contents["tokenizer.json"] = b"changed"
    assert files.contents == {"tokenizer.json": b"{}"}


def test_digests_are_sha256() -> None:
    """A digest is the SHA-256 of the file's bytes in lower-case hexadecimal."""
    assert TokenizerFiles({"tokenizer.json": b"{}"}).digest("tokenizer.json") == hashlib.sha256(b"{}").hexdigest()


def test_received_files_are_checked_against_their_digests() -> None:
    """Damaged contents, and names with only one of contents and digest, are refused."""
    contents = {"tokenizer.json": b"{}", "config.json": b"{}"}
    digest = hashlib.sha256(b"{}").hexdigest()
    digests = dict.fromkeys(contents, digest)
    assert TokenizerFiles.verified(contents, digests).contents == contents
    with pytest.raises(TokenizerFilesError, match=r"config\.json arrived damaged"):
        TokenizerFiles.verified({**contents, "config.json": b"{ }"}, digests)
    with pytest.raises(TokenizerFilesError, match=r"'config\.json' has contents without a digest"):
        TokenizerFiles.verified(contents, {"tokenizer.json": digest})


def test_a_text_file_that_is_not_utf8_is_refused() -> None:
    """Text is decoded strictly, so that no template is silently changed."""
    with pytest.raises(TokenizerFilesError, match=r"chat_template\.jinja is not UTF-8 \(byte 1\)"):
        TokenizerFiles({"tokenizer.json": b"{}", "chat_template.jinja": b"a\xff"}).text("chat_template.jinja")
