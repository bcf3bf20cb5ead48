"""Completing commands at the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from services.cli.chat.room import Room
from services.cli.chat.slash_commands import COMMANDS
from services.cli.service_failure import ServiceFailure


def candidates(room: Room, text: str) -> Sequence[str]:
    """Return what may stand in place of the last word of `text`: commands, or what the command before it takes.

    Nothing is completed in a message, or where the service does not tell what there is.
    """
    name, space, rest = text.partition(" ")
    if not name.startswith("/") or "\n" in text:
        return ()
    if not space:
        return [f"/{command.name}" for command in COMMANDS]
    if " " in rest:
        return ()
    try:
        return next((command.candidates(room) for command in COMMANDS if f"/{command.name}" == name), ())
    except ServiceFailure:
        return ()
