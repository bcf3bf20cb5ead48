"""Presets from TOML files, one a file; the file's name is the preset's.

title and description say what it is for; `system`, `user` and `opening` are its texts (see `Preset`), `[parameters]`
its sampling parameters, and `[variables.NAME]` has a variable's description and maybe its default and choices.
"""

from __future__ import annotations

import re
import tomllib
from string import Template
from typing import Any

from services.chassis.errors import InvalidRequest
from services.frontend.fields import UINT32, Fields
from services.frontend.params import parse_sampling
from services.frontend.presets.preset import INPUT, Preset, Variable

MAX_VALUE_CHARS = 4096
_MAX_CHOICES = 128
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_KEYS = ("title", "description", "system", "user", "opening", "parameters", "variables")
_VARIABLE_KEYS = ("description", "default", "choices")
_PARAMETERS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "max_tokens",
)


class PresetError(Exception):
    """A file is no preset. The text is one line that says why; whoever knows the file's path puts it before."""


def parse_preset(name: str, content: bytes) -> Preset:
    """Make a preset from a file's content.

    Args:
        name: the file's name without its ending.

    Raises:
        PresetError: it is no preset.
    """
    if not _NAME.fullmatch(name):
        raise PresetError("its name must be 1 to 64 small letters, digits, - and _, and begin with a letter or digit")
    table = _parse_toml(content)
    _refuse_unknown(table, _KEYS, "")
    variables = _parse_variables(table)
    names = {variable.name for variable in variables}
    system, opening = _string(table, "system"), _string(table, "opening")
    user = _string(table, "user")
    used = _used(system, "system", names) | (
        _used(f"${INPUT}" if user is None else user, "user", names | {INPUT})
        | _used(opening, "opening", names | {INPUT})
    )
    if INPUT not in used:
        raise PresetError(f"what the user wrote is lost; use ${INPUT} in user or in opening")
    if unused := sorted(names - used):
        raise PresetError(f"variable {unused[0]} is in none of its texts; use it or take it out")
    return Preset(
        name=name,
        title=_required(table, "title"),
        description=_required(table, "description"),
        system=system,
        user=f"${INPUT}" if user is None else user,
        opening=opening,
        variables=variables,
        parameters=_parse_parameters(table),
    )


def _parse_toml(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise PresetError("it is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise PresetError(f"it is not TOML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise PresetError("it is nested too deep") from None


def _parse_variables(table: dict[str, Any]) -> tuple[Variable, ...]:
    variables: list[Variable] = []
    for name, value in _table(table, "variables").items():
        path = f"variables.{name}"
        if not _VARIABLE.fullmatch(name) or name == INPUT:
            raise PresetError(f"{path}: a name is small letters, digits and _, begins with a letter and is not {INPUT}")
        if not isinstance(value, dict):
            raise PresetError(f"{path} must be a table")
        _refuse_unknown(value, _VARIABLE_KEYS, f"{path}.")
        choices = value.get("choices", [])
        if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
            raise PresetError(f"{path}.choices must be a list of strings")
        if len(choices) > _MAX_CHOICES or any(len(choice) > MAX_VALUE_CHARS for choice in choices):
            raise PresetError(f"{path}.choices may be {_MAX_CHOICES} of {MAX_VALUE_CHARS} characters at most")
        default = _string(value, "default", f"{path}.")
        if default is not None and choices and default not in choices:
            raise PresetError(f"{path}.default is none of its choices")
        variables.append(Variable(name, _required(value, "description", f"{path}."), default, tuple(choices)))
    return tuple(variables)


def _parse_parameters(table: dict[str, Any]) -> dict[str, float]:
    parameters = _table(table, "parameters")
    _refuse_unknown(parameters, _PARAMETERS, "parameters.")
    fields = Fields(parameters, "parameters.")
    try:
        # With the bounds that requests have.
        parse_sampling(fields, fields.integer("max_tokens", 1, UINT32))
    except InvalidRequest as error:
        raise PresetError(error.message) from None
    return parameters


def _used(text: str | None, key: str, allowed: set[str]) -> set[str]:
    """Return the names of the variables in a text."""
    if text is None:
        return set()
    template = Template(text)
    if not template.is_valid():
        raise PresetError(f"{key} has a $ that names no variable; write $$ for the sign itself")
    used = set(template.get_identifiers())
    if unknown := sorted(used - allowed):
        raise PresetError(f"{key} uses ${unknown[0]}, but it may use {', '.join(sorted(allowed)) or 'no variable'}")
    return used


def _required(table: dict[str, Any], key: str, path: str = "") -> str:
    value = _string(table, key, path)
    if not value or not value.strip():
        raise PresetError(f"{path}{key} is missing or empty")
    return value


def _string(table: dict[str, Any], key: str, path: str = "") -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise PresetError(f"{path}{key} must be a string")
    return value


def _table(table: dict[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise PresetError(f"{key} must be a table")
    return value


def _refuse_unknown(table: dict[str, Any], known: tuple[str, ...], path: str) -> None:
    if unknown := [key for key in table if key not in known]:
        raise PresetError(f"{path}{unknown[0]} is unknown; known are {', '.join(known)}")
