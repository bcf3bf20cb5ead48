"""A model's tokenizer files, held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

TOKENIZER_JSON = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
CHAT_TEMPLATE = "chat_template.jinja"
CHAT_TEMPLATE_JSON = "chat_template.json"
GENERATION_CONFIG = "generation_config.json"
MODEL_CONFIG = "config.json"

# The names under which model repositories keep what a tokenizer needs. Weights are never among them.
KNOWN_NAMES = (
    TOKENIZER_JSON,
    TOKENIZER_CONFIG,
    SPECIAL_TOKENS_MAP,
    CHAT_TEMPLATE,
    CHAT_TEMPLATE_JSON,
    GENERATION_CONFIG,
    MODEL_CONFIG,
    "added_tokens.json",
    "merges.txt",
    "tekken.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)


class TokenizerFilesError(ValueError):
    """A model's tokenizer files are missing, damaged or of an unknown form. The model's owner is at fault."""


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """The files of one model that text work needs, by name, with their contents.

    Args:
        contents: bytes by file name; names are among `KNOWN_NAMES`, and `tokenizer.json` is there.

    Raises:
        TokenizerFilesError: `tokenizer.json` is missing, or a name is unknown.
    """

    contents: Mapping[str, bytes]

    def __post_init__(self) -> None:
        unknown = sorted(set(self.contents) - set(KNOWN_NAMES))
        if unknown:
            raise TokenizerFilesError(f"{unknown[0]!r} is no tokenizer file; known names: {', '.join(KNOWN_NAMES)}")
        if TOKENIZER_JSON not in self.contents:
            found = ", ".join(sorted(self.contents)) or "no tokenizer file"
            raise TokenizerFilesError(
                f"{TOKENIZER_JSON} is missing (found {found}); save the tokenizer in the fast format beside the model"
            )
        # A private copy: what was checked here must not change under the tokenizers built from it.
        object.__setattr__(self, "contents", MappingProxyType(dict(self.contents)))

    @classmethod
    def from_directory(cls, path: Path) -> TokenizerFiles:
        """Read the known files that lie directly in `path`; others are left alone.

        Raises:
            TokenizerFilesError: `path` is no directory, or holds no `tokenizer.json`.
        """
        if not path.is_dir():
            raise TokenizerFilesError(f"{path} is not a directory; name the directory that holds {TOKENIZER_JSON}")
        return cls({name: (path / name).read_bytes() for name in KNOWN_NAMES if (path / name).is_file()})

    @classmethod
    def verified(cls, contents: Mapping[str, bytes], digests: Mapping[str, str]) -> TokenizerFiles:
        """Build from received contents after checking each against its announced digest.

        Args:
            contents: bytes by file name.
            digests: SHA-256 in lower-case hexadecimal by file name, for exactly the same names.

        Raises:
            TokenizerFilesError: a digest is missing, superfluous or differs, or as the constructor says.
        """
        if contents.keys() != digests.keys():
            odd = sorted(contents.keys() ^ digests.keys())[0]
            raise TokenizerFilesError(f"{odd!r} has contents without a digest or a digest without contents")
        files = cls(contents)
        for name in contents:
            if files.digest(name) != digests[name]:
                raise TokenizerFilesError(f"{name} arrived damaged: its SHA-256 differs from the announced one")
        return files

    def digest(self, name: str) -> str:
        """SHA-256 of a file in lower-case hexadecimal. Raises KeyError for a file that is not there."""
        return hashlib.sha256(self.contents[name]).hexdigest()

    def text(self, name: str) -> str | None:
        """A file as text, None where it is not there. Raises TokenizerFilesError for invalid UTF-8."""
        content = self.contents.get(name)
        if content is None:
            return None
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise TokenizerFilesError(f"{name} is not UTF-8 (byte {error.start}); replace the file") from error
