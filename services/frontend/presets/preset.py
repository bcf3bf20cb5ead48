"""A task preset: what a chat becomes when it is asked for by the task's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

# What the user wrote, in a preset's texts.
INPUT = "input"


@dataclass(frozen=True, slots=True)
class Variable:
    """What a caller fills in. Without a default it must be given; with choices it is one of them."""

    name: str
    description: str
    default: str | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preset:
    """A named task.

    Its texts are templates of https://docs.python.org/3/library/string.html#template-strings over its variables.

    Args:
        system: system message of chats that bring none of their own; it has no `$input`.
        user: what the last user message becomes; `$input` is what it was.
        opening: how the answer begins. The model goes on from there, and the answer holds only what it adds.
        parameters: sampling parameters, by their names in requests, where the request has none of its own.
    """

    name: str
    title: str
    description: str
    system: str | None
    user: str
    opening: str | None
    variables: tuple[Variable, ...]
    parameters: Mapping[str, float]

    def public(self) -> dict[str, object]:
        """Return the preset as the API shows it."""
        return {
            "object": "preset",
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "variables": [_public(variable) for variable in self.variables],
            "parameters": dict(self.parameters),
            "system": self.system,
            "user": self.user,
            "opening": self.opening,
        }


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template's text. What the values hold is not looked at again, so that a `$` in them stays."""
    return Template(template).substitute(values)


def _public(variable: Variable) -> dict[str, object]:
    shown: dict[str, object] = {"name": variable.name, "description": variable.description}
    if variable.default is not None:
        shown["default"] = variable.default
    if variable.choices:
        shown["choices"] = list(variable.choices)
    return shown
