"""What was typed at the prompt, kept from one conversation to the next."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

_FILE = "prompt-history.jsonl"
_MOST = 1000
# Trimmed only when twice as much has gathered, so that not each start writes the file anew.
_TRIM_AT = 2 * _MOST


class PromptHistory:
    """Entries, one JSON string a line, in a file that nobody but the user can read.

    Args:
        directory: holds the file; is made if it is missing. None keeps nothing beyond this process.

    Raises:
        OSError: the file cannot be read or written.
    """

    def __init__(self, directory: Path | None) -> None:
        self._path = None if directory is None else directory / _FILE
        self._entries: list[str] = []
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._append(self._path, "")
            self._entries = _read(self._path)
            if len(self._entries) > _TRIM_AT:
                self._trim(self._path)

    @property
    def entries(self) -> Sequence[str]:
        """Oldest first, at most a thousand or two."""
        return self._entries

    def add(self, text: str) -> None:
        """Keep an entry; one that repeats the last is passed over.

        Raises:
            OSError: it cannot be written; it is kept for this process.
        """
        if self._entries[-1:] == [text]:
            return
        self._entries.append(text)
        if self._path is not None:
            self._append(self._path, json.dumps(text) + "\n")

    def _trim(self, path: Path) -> None:
        self._entries = self._entries[-_MOST:]
        fresh = path.with_suffix(f".{os.getpid()}")
        self._append(fresh, "".join(json.dumps(entry) + "\n" for entry in self._entries))
        fresh.replace(path)

    @staticmethod
    def _append(path: Path, text: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with open(descriptor, "a", encoding="utf-8") as file:
            # It may have been made by other means, or copied.
            os.fchmod(descriptor, 0o600)
            file.write(text)


def _read(path: Path) -> list[str]:
    entries = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            # Cut short, by a full disk for one; the others still count.
            continue
        if isinstance(entry, str):
            entries.append(entry)
    return entries
