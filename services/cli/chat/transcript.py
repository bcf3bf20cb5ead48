"""A conversation as a file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from services.cli.service_client import Message

# Fields of a message that tell the conversation; what else the service tells of it stays there.
_FIELDS = ("role", "content", "reasoning", "tool_calls", "tool_call_id", "model", "status", "created_at")


class TranscriptError(Exception):
    """The transcript cannot be written. The text is one line."""


def save_transcript(path: Path, messages: Sequence[Message], model: str, replace: bool = False) -> None:
    """Write a conversation into a file that nobody but the user can read, as Markdown or JSON by the file's name.

    Args:
        path: ends with `.md`, `.markdown` or `.json`.
        messages: oldest first.
        model: who answered last.
        replace: whether a file that is there is written over.

    Raises:
        TranscriptError: the name or the place is of no use.
    """
    write = _FORMATS.get(path.suffix.lower())
    if write is None:
        raise TranscriptError(f"{path} ends with neither .md nor .json, which say how to write it; give such a name")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if replace else os.O_EXCL), 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(write(messages, model))
    except FileExistsError as error:
        raise TranscriptError(f"{path} is there already; give another name, or write over it with -f") from error
    except OSError as error:
        raise TranscriptError(f"{path} cannot be written ({error.strerror}); give another name") from error


def as_markdown(messages: Sequence[Message], title: str) -> str:
    """Return a conversation as Markdown: the title, a heading for each message, and its text as it is."""
    parts = [f"# {title}"]
    for message in messages:
        mark = " (partial)" if message.get("status") == "partial" else ""
        parts.append(f"## {str(message.get('role', '')).capitalize()}{mark}")
        parts.append(_text(message))
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(messages: Sequence[Message], model: str) -> str:
    """Return a conversation as a JSON object of `model` and `messages`, which a chat request can hold as they are."""
    kept = [{name: message[name] for name in _FIELDS if message.get(name) is not None} for message in messages]
    return json.dumps({"model": model, "messages": kept}, ensure_ascii=False, indent=2) + "\n"


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _titled(messages: Sequence[Message], model: str) -> str:
    return as_markdown(messages, f"Conversation with {model}")


_FORMATS: Mapping[str, Callable[[Sequence[Message], str], str]] = {
    ".json": as_json,
    ".markdown": _titled,
    ".md": _titled,
}
