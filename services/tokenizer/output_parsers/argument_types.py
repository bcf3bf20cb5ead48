"""JSON of arguments that a model writes as plain text, by the types that the tool's JSON Schema names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

_ANY = frozenset(["array", "boolean", "integer", "null", "number", "object", "string"])
_STRING = frozenset(["string"])
# Templates that print values as Python does teach models these spellings.
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_LONGEST_WORD = {"boolean": len("False"), "null": len("None")}
_MAX_DEPTH = 8
# Longer than any text: the whole value has to be known.
_WHOLE = 1 << 62


class ArgumentTypes:
    """The types that one parameter's value may have, from its tool's JSON Schema.

    https://json-schema.org/draft/2020-12/json-schema-validation#name-type

    Args:
        parameters: the schema of all arguments.
        name: of the parameter. One that the schema does not know may be anything.
    """

    __slots__ = ("_types",)

    def __init__(self, parameters: Mapping[str, object], name: str) -> None:
        properties = parameters.get("properties")
        schema = properties.get(name) if isinstance(properties, Mapping) else None
        if schema is None:
            schema = parameters.get("additionalProperties")
        self._types = _types(schema, parameters, _MAX_DEPTH)

    @property
    def undecided(self) -> int:
        """Characters up to which a value may be something else than a string; a longer one is a string for certain."""
        if all(kind in _LONGEST_WORD or kind == "string" for kind in self._types) and "string" in self._types:
            return max((_LONGEST_WORD.get(kind, 0) for kind in self._types), default=0)
        return _WHOLE

    def json_of(self, text: str) -> str:
        """JSON of a whole value: as it was written where that is JSON of an allowed type, else as a string."""
        if self._types == _STRING or len(text) > self.undecided:
            return json.dumps(text, ensure_ascii=False)
        written = text.strip(" \t\r\n")
        if self._types != _ANY:
            written = _PYTHON_WORDS.get(written, written)
        try:
            kinds = _kinds(json.loads(written, parse_constant=_no_constant))
        except (ValueError, RecursionError):
            return json.dumps(text, ensure_ascii=False)
        if "string" in self._types and not kinds & (self._types - _STRING):
            return json.dumps(text, ensure_ascii=False)
        return written


def string_piece(text: str) -> str:
    """Characters of a string within JSON, without the quotes. Pieces may be put together."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _types(schema: object, root: Mapping[str, object], depth: int) -> frozenset[str]:
    """The types that a schema allows, as far as it says so in words and not in other conditions."""
    if not isinstance(schema, Mapping) or depth == 0:
        return _ANY
    reference, stated = schema.get("$ref"), schema.get("type")
    if isinstance(reference, str):
        return _types(_referenced(root, reference), root, depth - 1)
    if isinstance(stated, str):
        return frozenset([stated]) & _ANY or _ANY
    if isinstance(stated, list):
        return _ANY.intersection(kind for kind in stated if isinstance(kind, str)) or _ANY
    for word in ("anyOf", "oneOf"):
        if isinstance(alternatives := schema.get(word), list) and alternatives:
            return frozenset[str]().union(*(_types(one, root, depth - 1) for one in alternatives))
    if isinstance(parts := schema.get("allOf"), list) and parts:
        return _ANY.intersection(*(_types(one, root, depth - 1) for one in parts)) or _ANY
    if isinstance(values := schema.get("enum"), list) and values:
        return _of_values(values)
    return _of_values([schema["const"]]) if "const" in schema else _ANY


def _referenced(root: Mapping[str, object], reference: str) -> object:
    """What a reference within the schema names, such as `#/$defs/city`; None where that is nothing."""
    found: object = root if reference.startswith("#") else None
    for step in reference.removeprefix("#").split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _of_values(values: Iterable[object]) -> frozenset[str]:
    return frozenset[str]().union(*(_kinds(value) for value in values))


def _kinds(value: object) -> frozenset[str]:
    """Types of a JSON value; a whole number is of two."""
    if value is None:
        return frozenset(["null"])
    if isinstance(value, bool):
        return frozenset(["boolean"])
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset(["integer", "number"])
    if isinstance(value, float):
        return frozenset(["number"])
    if isinstance(value, str):
        return _STRING
    return frozenset(["array" if isinstance(value, list) else "object"])


def _no_constant(name: str) -> object:
    # Python reads NaN and Infinity, which JSON has not.
    raise ValueError(name)
