"""Telling commands from messages."""

from __future__ import annotations

import pytest

from services.cli.chat.slash_command import command_in, message_in, typed_as


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", ("help", "")),
        (" /model  tiny \n", ("model", "tiny")),
        ("/edit two\nlines", ("edit", "two\nlines")),
        ("/usr/bin is what?", None),
        ("//help", None),
        ("/ help", None),
        ("/Help", None),
        ("what is /help", None),
        ("/", None),
    ],
)
def test_command_is_a_slash_and_a_word(text: str, command: tuple[str, str] | None) -> None:
    """Only a text that begins with a slash and lower-case letters alone is a command; paths are messages."""
    assert command_in(text) == command


@pytest.mark.parametrize("message", ["/help", "//a", "/model x", "/usr/bin", "a // b", "plain"])
def test_any_message_can_be_typed(message: str) -> None:
    """A message that looks like a command is typed with one more slash."""
    typed = typed_as(message)
    assert command_in(typed) is None
    assert message_in(typed) == message
