"""A conversation at a terminal, from the first prompt to the end."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from services.cli.chat.history import NothingAsked
from services.cli.chat.prompt import Prompt
from services.cli.chat.room import Room
from services.cli.chat.slash_command import CommandMistake, command_in, message_in, typed_as
from services.cli.chat.slash_commands import run_command
from services.cli.service_failure import ServiceFailure


def converse(room: Room, prompt: Prompt) -> None:
    """Read messages and commands, and do what they ask for, until the user ends it. Errors are shown as one line."""
    while not room.is_over:
        draft, room.draft = room.draft, None
        text = prompt.read("" if draft is None else typed_as(draft.text))
        if text is None:
            return
        if not text.strip():
            continue
        try:
            with silent_keys():
                if command := command_in(text):
                    run_command(room, *command)
                elif draft is not None:
                    draft.send(message_in(text))
                else:
                    room.conversation.ask(message_in(text))
        except (CommandMistake, NothingAsked, ServiceFailure) as error:
            room.display.note(f"error: {error}")
        except KeyboardInterrupt:
            # A command's own request to the service; an answer takes note of it itself.
            room.display.note("stopped")


@contextmanager
def silent_keys() -> Iterator[None]:
    """Let the terminal not show what is typed, which would end up in the middle of an answer; Ctrl-C still counts."""
    try:
        before = termios.tcgetattr(sys.stdin)
    except termios.error:
        yield
        return
    silent = [*before]
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
