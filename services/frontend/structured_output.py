"""What the output must conform to, by any of the names that callers use for it.

OpenAI's `response_format` (https://platform.openai.com/docs/guides/structured-outputs), vLLM's `structured_outputs`
and its older `guided_…` fields (https://docs.vllm.ai/en/latest/features/structured_outputs.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.fields import Fields, shown

MAX_CHOICES = 1000
MAX_CHARS = 64 * 1024

Kind = Literal["json_schema_json", "json_object", "regex", "grammar", "choice", "structural_tag_json"]

_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StructuredOutput:
    """A constraint of `streamomni.engine.v1.StructuredOutput`.

    `param` is the field by which the caller gave it. `text` goes with all kinds but `json_object` and `choice`.
    """

    param: str
    kind: Kind
    text: str = ""
    choices: tuple[str, ...] = ()


def parse_structured_output(fields: Fields) -> StructuredOutput | None:
    """Read the constraint, None without one. Whether it compiles is for the engine to say.

    Raises:
        InvalidRequest: it is malformed or too large, or there is more than one.
        Unsupported: an option of it is not served.
    """
    given = [
        one for one in (_response_format(fields), _structured_outputs(fields), *_guided(fields)) if one is not None
    ]
    if len(given) > 1:
        raise InvalidRequest(
            f"{given[0].param} and {given[1].param} both constrain the output; send one of them", param=given[1].param
        )
    return given[0] if given else None


def _response_format(fields: Fields) -> StructuredOutput | None:
    param = "response_format"
    response_format = fields.nested(param)
    if response_format is None:
        return None
    kind = response_format.string("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return StructuredOutput(param, "json_object")
    if kind == "json_schema":
        return StructuredOutput(param, "json_schema_json", _named_schema(response_format))
    if kind == "structural_tag":
        return StructuredOutput(param, "structural_tag_json", _dumped(fields.value(param), param))
    raise InvalidRequest(
        "response_format.type must be text, json_object or json_schema", param=response_format.path("type")
    )


def _named_schema(response_format: Fields) -> str:
    json_schema = response_format.nested("json_schema")
    if json_schema is None:
        path = response_format.path("json_schema")
        raise InvalidRequest(f"{path} is missing; send an object with name and schema", param=path)
    name = json_schema.string("name")
    if name is None or not _SCHEMA_NAME.fullmatch(name):
        raise InvalidRequest(
            f"{json_schema.path('name')} must have 1 to 64 letters, digits, underscores and dashes",
            param=json_schema.path("name"),
        )
    json_schema.string("description")
    # A schema that is not strict is held to all the same: that obeys it too.
    json_schema.boolean("strict")
    if json_schema.nested("schema") is None:
        path = json_schema.path("schema")
        raise InvalidRequest(f"{path} is missing; send a JSON Schema", param=path)
    return _dumped(json_schema.value("schema"), json_schema.path("schema"))


def _structured_outputs(fields: Fields) -> StructuredOutput | None:
    param = "structured_outputs"
    constraints = fields.nested(param)
    if constraints is None:
        return None
    for option in ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern"):
        if constraints.value(option) not in (None, False):
            path = constraints.path(option)
            raise Unsupported(f"{path} is not supported by this version; leave it out", param=path)
    given = [(name, read) for name, read in _READERS.items() if constraints.value(name) is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"structured_outputs must hold exactly one of {', '.join(_READERS)}, but it holds {len(given)}", param=param
        )
    name, read = given[0]
    return read(constraints, name, param)


def _guided(fields: Fields) -> list[StructuredOutput]:
    return [
        read(fields, f"guided_{name}", f"guided_{name}")
        for name, read in _READERS.items()
        if name in ("json", "regex", "grammar", "choice") and fields.value(f"guided_{name}") is not None
    ]


def _read_json(fields: Fields, name: str, param: str) -> StructuredOutput:
    value = fields.value(name)
    if isinstance(value, str):
        return StructuredOutput(param, "json_schema_json", _text(fields, name))
    if not isinstance(value, dict):
        path = fields.path(name)
        raise InvalidRequest(f"{path} must be a JSON Schema, as an object or as text, not {shown(value)}", param=path)
    return StructuredOutput(param, "json_schema_json", _dumped(value, fields.path(name)))


def _read_json_object(fields: Fields, name: str, param: str) -> StructuredOutput:
    if not fields.boolean(name):
        path = fields.path(name)
        raise InvalidRequest(f"{path} must be true; leave it out for output of any form", param=path)
    return StructuredOutput(param, "json_object")


def _read_regex(fields: Fields, name: str, param: str) -> StructuredOutput:
    return StructuredOutput(param, "regex", _text(fields, name))


def _read_grammar(fields: Fields, name: str, param: str) -> StructuredOutput:
    return StructuredOutput(param, "grammar", _text(fields, name))


def _read_choice(fields: Fields, name: str, param: str) -> StructuredOutput:
    values = fields.array(name, MAX_CHOICES)
    if not values or not all(isinstance(value, str) and value for value in values):
        path = fields.path(name)
        raise InvalidRequest(f"{path} must be a list of 1 to {MAX_CHOICES} strings that are not empty", param=path)
    return StructuredOutput(param, "choice", choices=tuple(values))


def _read_structural_tag(fields: Fields, name: str, param: str) -> StructuredOutput:
    return StructuredOutput(param, "structural_tag_json", _text(fields, name))


_READERS: dict[str, Callable[[Fields, str, str], StructuredOutput]] = {
    "json": _read_json,
    "json_object": _read_json_object,
    "regex": _read_regex,
    "grammar": _read_grammar,
    "choice": _read_choice,
    "structural_tag": _read_structural_tag,
}


def _text(fields: Fields, name: str) -> str:
    text = fields.string(name, MAX_CHARS)
    if not text:
        path = fields.path(name)
        raise InvalidRequest(f"{path} must not be empty; leave it out", param=path)
    return text


def _dumped(value: Any, path: str) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        # Integers beyond 64 bits, or nesting that no schema needs.
        raise InvalidRequest(f"{path} holds a number or nesting beyond what is read; simplify it", param=path) from None
    if len(text) > MAX_CHARS:
        raise InvalidRequest(f"{path} may have at most {MAX_CHARS} characters, but it has {len(text)}", param=path)
    return text
