"""Choosing a preset at the prompt."""

from __future__ import annotations

import pytest

from services.cli.chat.preset_choice import chosen_preset, preset_lines
from services.cli.chat.slash_command import CommandMistake
from tests.cli.scripted_http import TRANSLATE

CHAT = {"name": "chat", "description": "Talks.\x1b[2J", "variables": []}


def test_presets_are_listed_with_their_variables() -> None:
    """Each line names a preset, what it does and what its variables may be; the current one is marked."""
    assert preset_lines([CHAT, TRANSLATE], "translate") == [
        "  chat       Talks.�[2J",
        "* translate  Translates. [language=French|German]",
    ]


def test_values_may_hold_spaces() -> None:
    """Variables are NAME=VALUE, quoted as in a shell."""
    chosen = chosen_preset([CHAT, TRANSLATE], "translate language='old French' tone=")
    assert chosen == ("translate", {"language": "old French", "tone": ""})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("other", "there is no preset other; there are chat, translate"),
        ("translate French", "French is not VARIABLE=VALUE"),
        ("translate language='French", "a quotation mark is not closed"),
    ],
)
def test_mistakes_are_told(text: str, told: str) -> None:
    """Each is one line that says what there is or how it is written."""
    with pytest.raises(CommandMistake, match=told):
        chosen_preset([CHAT, TRANSLATE], text)
