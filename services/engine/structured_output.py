"""What an output must conform to, and the sizes that are taken.

A constraint is compiled from the caller's text, so its cost is bounded before
any library sees it: by its length, its nesting and the lengths of its lists.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from services.chassis.errors import InvalidRequest

MAX_TEXT_BYTES = 64 * 1024
MAX_CHOICES = 1000
MAX_NESTING = 64
MAX_LIST_BOUNDS = 20_000
"""Sum of the list lengths that a schema names: each is written out when it is compiled."""

_LIST_BOUNDS = ("minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties")
_PARAM = "structured_output"


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """JSON that a schema allows."""

    schema_json: str


@dataclass(frozen=True, slots=True)
class JsonObject:
    """Any JSON object."""


@dataclass(frozen=True, slots=True)
class Regex:
    """What a regular expression matches as a whole."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Grammar:
    """A sentence of a context-free grammar."""

    grammar: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these strings."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StructuralTag:
    """Free text with tagged regions, each of a schema."""

    tag_json: str


StructuredOutput = JsonSchema | JsonObject | Regex | Grammar | Choice | StructuralTag


def check_structured_output(output: StructuredOutput) -> None:
    """Check a constraint's size and, for JSON, its form. Whether it compiles is for the engine to say.

    Raises:
        InvalidRequest: it is empty, too large or no JSON.
    """
    if isinstance(output, Choice):
        _check_choices(output.values)
    elif isinstance(output, Regex):
        _check_text("regex", output.pattern)
    elif isinstance(output, Grammar):
        _check_text("grammar", output.grammar)
    elif isinstance(output, JsonSchema):
        _check_json("JSON schema", output.schema_json)
    elif isinstance(output, StructuralTag):
        _check_json("structural tag", output.tag_json)


def _check_choices(values: tuple[str, ...]) -> None:
    if not 1 <= len(values) <= MAX_CHOICES:
        raise InvalidRequest(f"choice has {len(values)} strings; 1 to {MAX_CHOICES} are allowed", param=_PARAM)
    for value in values:
        if not value:
            raise InvalidRequest("choice holds an empty string; leave it out", param=_PARAM)
    _check_size("choice", sum(len(value.encode()) for value in values))


def _check_text(name: str, text: str) -> None:
    if not text.strip():
        raise InvalidRequest(f"the {name} is empty; send one, or leave it out", param=_PARAM)
    if "\0" in text:
        raise InvalidRequest(f"the {name} holds a NUL character; remove it", param=_PARAM)
    _check_size(name, len(text.encode()))


def _check_size(name: str, size: int) -> None:
    if size > MAX_TEXT_BYTES:
        raise InvalidRequest(f"the {name} has {size} bytes; at most {MAX_TEXT_BYTES} are allowed", param=_PARAM)


def _check_json(name: str, text: str) -> None:
    _check_text(name, text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"the {name} is no valid JSON; send a JSON object", param=_PARAM) from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"the {name} is no JSON object; send one", param=_PARAM)
    bounds, depth = 0.0, 0
    level: list[dict[str, object] | list[object]] = [value]
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise InvalidRequest(f"the {name} is nested more than {MAX_NESTING} deep; flatten it", param=_PARAM)
        bounds += sum(_list_bounds(node) for node in level if isinstance(node, dict))
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
    if bounds > MAX_LIST_BOUNDS:
        raise InvalidRequest(
            f"the {name} asks for lists of {bounds:.0f} items in all; at most {MAX_LIST_BOUNDS} are allowed",
            param=_PARAM,
        )


def _list_bounds(schema: dict[str, object]) -> float:
    bounds = (schema.get(name) for name in _LIST_BOUNDS)
    return sum(bound for bound in bounds if isinstance(bound, (int, float)) and bound > 0)
