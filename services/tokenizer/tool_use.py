"""The tools of a chat and whether they are called."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from services.chassis.errors import InvalidRequest

# Where JSON Schema keeps definitions that references name: 2020-12's place and the older one.
_DEFINITIONS = ("$defs", "definitions")


class ToolMode(Enum):
    """Whether tools are called."""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"
    FUNCTION = "function"


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str | None
    parameters: Mapping[str, object]
    strict: bool = False

    def template_object(self) -> dict[str, object]:
        """OpenAI's tool object, as chat templates read it."""
        function: dict[str, object] = {"name": self.name}
        if self.description is not None:
            function["description"] = self.description
        function["parameters"] = dict(self.parameters)
        if self.strict:
            function["strict"] = True
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What a chat asks of its tools.

    Attributes:
        function: name of the one to be called, with mode FUNCTION.
        parallel: more than one call in an answer is allowed.
    """

    mode: ToolMode = ToolMode.NONE
    tools: tuple[Tool, ...] = ()
    function: str = ""
    parallel: bool = True

    @property
    def template_objects(self) -> list[dict[str, object]]:
        """The tools that the template shows; none where none may be called."""
        return [] if self.mode is ToolMode.NONE else [tool.template_object() for tool in self.tools]

    def json_schema(self) -> str | None:
        """What the whole output must conform to, as JSON text: the arguments of the one function, or a list of calls.

        None where the model is free.

        Raises:
            InvalidRequest: two tools define different things under one name.
        """
        if self.mode is ToolMode.FUNCTION:
            (tool,) = (tool for tool in self.tools if tool.name == self.function)
            return json.dumps(_object_schema(tool))
        if self.mode is not ToolMode.REQUIRED:
            return None
        definitions: dict[str, dict[str, object]] = {}
        calls = [_call_schema(tool, definitions) for tool in self.tools]
        schema: dict[str, object] = {"type": "array", "minItems": 1, "items": {"anyOf": calls}}
        if not self.parallel:
            schema["maxItems"] = 1
        return json.dumps(schema | definitions)


def _object_schema(tool: Tool) -> dict[str, object]:
    return {"type": "object", **tool.parameters} if tool.parameters else {"type": "object", "properties": {}}


def _call_schema(tool: Tool, definitions: dict[str, dict[str, object]]) -> dict[str, object]:
    parameters = _object_schema(tool)
    # References name definitions from the root of the whole schema, so that is where they have to lie.
    for place in _DEFINITIONS:
        own = parameters.pop(place, None)
        if not isinstance(own, Mapping):
            continue
        known = definitions.setdefault(place, {})
        for name, definition in own.items():
            if known.setdefault(name, definition) != definition:
                raise InvalidRequest(
                    f"two tools define different things as {place}/{name}; give them different names", param="tools"
                )
    return {
        "type": "object",
        "properties": {"name": {"type": "string", "enum": [tool.name]}, "parameters": parameters},
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }
