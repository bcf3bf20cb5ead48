"""Choosing a preset by its name and variables."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from services.cli.chat.slash_command import CommandMistake
from services.cli.control_text import printable_line

Preset = Mapping[str, Any]


def preset_lines(presets: Sequence[Preset], current: str | None) -> Sequence[str]:
    """Return a line for each preset, with its variables and what they may be, the current one marked."""
    width = max((len(str(preset.get("name"))) for preset in presets), default=0)
    return [
        f"{'*' if preset.get('name') == current else ' '} {preset.get('name')!s:{width}}  "
        + printable_line(" ".join([str(preset.get("description") or preset.get("title") or ""), *_variables(preset)]))
        for preset in presets
    ]


def chosen_preset(presets: Sequence[Preset], text: str) -> tuple[str, Mapping[str, str]]:
    """Return the preset and the variables that a text such as `translate language=French` names.

    Raises:
        CommandMistake: there is no such preset, or the text is written otherwise.
    """
    try:
        name, *pairs = shlex.split(text)
    except ValueError as error:
        raise CommandMistake(f"a quotation mark is not closed ({error}); close it") from error
    names = [str(preset.get("name")) for preset in presets]
    if name not in names:
        raise CommandMistake(f"there is no preset {name}; there are {', '.join(names) or 'none'}")
    variables = {}
    for pair in pairs:
        variable, equals, value = pair.partition("=")
        if not equals or not variable:
            raise CommandMistake(f"{pair} is not VARIABLE=VALUE; write a value with spaces in quotation marks")
        variables[variable] = value
    return name, variables


def _variables(preset: Preset) -> Sequence[str]:
    shown = []
    for variable in preset.get("variables") or ():
        values = "|".join(map(str, variable.get("choices") or ())) or variable.get("default") or "…"
        shown.append(f"[{variable.get('name')}={values}]")
    return shown
