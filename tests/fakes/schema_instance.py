"""What a structured output allows, for fakes that are asked for one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from services.engine.structured_output import Choice, JsonSchema

# The outputs that the fakes know.
Known = Choice | JsonSchema


def forced_text(output: Known) -> str:
    """The first choice, or JSON of the first value that the schema allows."""
    return output.values[0] if isinstance(output, Choice) else json.dumps(instance(json.loads(output.schema_json)))


def instance(schema: Mapping[str, Any]) -> object:
    """The first value that a simple schema allows: constants, first alternatives, required members, empty texts."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0])
    kind = schema.get("type", "object")
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: instance(properties.get(name, {})) for name in schema.get("required", ())}
    if kind == "array":
        return [instance(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
    return {"string": "", "integer": 0, "number": 0.5, "boolean": True}.get(kind)
