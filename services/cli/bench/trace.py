"""A trace: a file that says what to send and when, a JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.arguments import UsageError

_FIELDS = {"at_s", "max_tokens", "messages", "prompt", "prompt_tokens"}
_CONTENTS = ("messages", "prompt", "prompt_tokens")


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One request of a trace.

    Args:
        at_s: when, in seconds from the start.
        content: a list of messages, a text, a list of token ids, or the number of tokens of a prompt to make.
        max_tokens: most tokens of the answer; None leaves it to the options.
    """

    at_s: float
    content: list[dict[str, Any]] | str | list[int] | int
    max_tokens: int | None


def read_trace(path: Path, endpoint: str) -> Sequence[TraceEntry]:
    """Return the entries in the order of their times.

    Raises:
        UsageError: the file cannot be read, or a line is no entry for this endpoint.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"the trace {path} cannot be read: {reason}") from error
    entries = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entries.append(_entry(line, endpoint))
            except ValueError as error:
                raise UsageError(f"line {number} of the trace {path}: {error}") from error
    if not entries:
        raise UsageError(f"the trace {path} is empty; give one JSON object a line")
    return sorted(entries, key=lambda entry: entry.at_s)


def _entry(line: str, endpoint: str) -> TraceEntry:
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise ValueError('it is no JSON object; write {"at_s": 0.5, "prompt_tokens": 100, "max_tokens": 20}')
    if unknown := sorted(fields.keys() - _FIELDS):
        raise ValueError(f"{unknown[0]!r} is not known; allowed are {', '.join(sorted(_FIELDS))}")
    at_s: Any = fields.get("at_s")
    max_tokens: Any = fields.get("max_tokens")
    if not _is_number(at_s) or not 0 <= at_s < 1e9:
        raise ValueError("at_s must be a number of seconds from 0 up")
    if max_tokens is not None and not _is_count(max_tokens):
        raise ValueError("max_tokens must be a whole number from 1 up")
    given = [name for name in _CONTENTS if name in fields]
    if len(given) != 1:
        raise ValueError(f"give exactly one of {', '.join(_CONTENTS)}")
    content = fields[given[0]]
    _check_content(given[0], content, endpoint)
    return TraceEntry(float(at_s), content, max_tokens)


def _check_content(name: str, content: Any, endpoint: str) -> None:
    if name == "prompt_tokens":
        if not _is_count(content):
            raise ValueError("prompt_tokens must be a whole number from 1 up")
    elif name == "messages":
        if endpoint != "chat":
            raise ValueError("messages need --endpoint chat")
        if not isinstance(content, list) or not content or not all(isinstance(message, dict) for message in content):
            raise ValueError("messages must be a list of objects")
    elif isinstance(content, list):
        if endpoint == "chat":
            raise ValueError("token ids need --endpoint completions")
        if not content or not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in content):
            raise ValueError("prompt must be a text or a list of token ids")
    elif not isinstance(content, str):
        raise ValueError("prompt must be a text or a list of token ids")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
