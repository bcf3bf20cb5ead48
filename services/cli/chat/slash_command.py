"""What a command at the prompt is, and how one is told from a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.cli.chat.room import Room

_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


class CommandMistake(Exception):
    """A command cannot be done as it was given. The text is one line."""


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One command.

    Args:
        name: without the slash.
        arguments: how they are shown in the help.
        about: what it does, in a few words.
        run: does it, given what stands after its name. Raises CommandMistake, NothingAsked or ServiceFailure.
        candidates: what may stand after its name.
    """

    name: str
    arguments: str
    about: str
    run: Callable[[Room, str], None]
    candidates: Callable[[Room], Sequence[str]] = lambda room: ()


def command_in(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments of the command that a text is; None for a message.

    A command is a slash and lower-case letters: `/usr/bin` is a message, and `//help` one that begins with a slash.
    """
    found = _COMMAND.fullmatch(text.strip())
    return None if found is None else (found[1], (found[2] or "").strip())


def message_in(text: str) -> str:
    """Return the message that a text is: of two slashes at its start, one."""
    return text[1:] if text.startswith("//") else text


def typed_as(message: str) -> str:
    """Return the text that `message_in` turns into this message, and that is no command."""
    return f"/{message}" if message.startswith("//") or command_in(message) else message
