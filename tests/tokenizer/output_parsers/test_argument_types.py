"""Types of arguments from a tool's JSON Schema."""

from __future__ import annotations

import pytest

from services.tokenizer.output_parsers.argument_types import ArgumentTypes, string_piece

STRING_OR_NULL = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def json_of(schema: object, text: str) -> str:
    """JSON of a value whose parameter has this schema."""
    return ArgumentTypes({"properties": {"p": schema}}, "p").json_of(text)


@pytest.mark.parametrize(
    ("schema", "text", "written"),
    [
        ({"type": "string"}, "5", '"5"'),
        ({"type": "string"}, '{"a": 1}', '"{\\"a\\": 1}"'),
        ({"type": "string"}, "null", '"null"'),
        ({"type": "string"}, "", '""'),
        ({"type": "integer"}, "5", "5"),
        ({"type": "integer"}, " 5\n", "5"),
        ({"type": "integer"}, "five", '"five"'),
        ({"type": "number"}, "NaN", '"NaN"'),
        ({"type": "number"}, "-1.50e3", "-1.50e3"),
        ({"type": "boolean"}, "True", "true"),
        ({"type": "boolean"}, "false", "false"),
        ({"type": "null"}, "None", "null"),
        ({"type": "object"}, '{"a": [1, "é"]}', '{"a": [1, "é"]}'),
        ({"type": "array"}, "[1,\n2]", "[1,\n2]"),
        ({"type": "array"}, "[1,", '"[1,"'),
        ({"type": "integer"}, "[" * 100_000, '"' + "[" * 100_000 + '"'),
        ({"type": ["string", "integer"]}, "5", "5"),
        ({"type": ["string", "integer"]}, "5.5", '"5.5"'),
        ({"type": ["string", "integer"]}, "5.0", "5.0"),
        (STRING_OR_NULL, "null", "null"),
        (STRING_OR_NULL, "nullable", '"nullable"'),
        (STRING_OR_NULL, "5", '"5"'),
        ({"enum": [1, 2]}, "1", "1"),
        ({"enum": ["1", "2"]}, "1", '"1"'),
        ({"const": True}, "True", "true"),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": "integer"}]}, "7", "7"),
        ({}, "7", "7"),
        ({}, "True", '"True"'),
        ({}, "a b", '"a b"'),
        ({"type": "date"}, "7", "7"),
        ({"$ref": "#/nowhere"}, "7", "7"),
        (True, "7", "7"),
    ],
)
def test_values(schema: object, text: str, written: str) -> None:
    """A value is JSON of a type that its schema allows, kept as it was written, or else a string."""
    assert json_of(schema, text) == written


def test_references_are_followed() -> None:
    """A type may be defined elsewhere in the schema; a reference to itself is any type."""
    parameters = {
        "properties": {"p": {"$ref": "#/$defs/a~1b"}, "q": {"$ref": "#/properties/q"}},
        "$defs": {"a/b": {"type": "string"}},
    }
    assert ArgumentTypes(parameters, "p").json_of("5") == '"5"'
    assert ArgumentTypes(parameters, "q").json_of("5") == "5"


def test_parameters_that_the_schema_does_not_name() -> None:
    """They have the type of additional properties where one is stated, and may be anything where none is."""
    assert ArgumentTypes({"additionalProperties": {"type": "string"}}, "p").json_of("5") == '"5"'
    assert ArgumentTypes({}, "p").json_of("5") == "5"


@pytest.mark.parametrize(
    ("schema", "undecided"),
    [({"type": "string"}, 0), (STRING_OR_NULL, 4), ({"type": ["string", "boolean"]}, 5)],
)
def test_strings_need_not_wait(schema: object, undecided: int) -> None:
    """A string may be passed on at once, or as soon as it is longer than any word that it could be instead."""
    assert ArgumentTypes({"properties": {"p": schema}}, "p").undecided == undecided
    assert ArgumentTypes({"properties": {"p": {"type": ["string", "number"]}}}, "p").undecided > 1_000_000


def test_pieces_of_a_string() -> None:
    """Quotes, backslashes and control characters are escaped; pieces join to the whole."""
    assert string_piece('a"\\\n\0é') == 'a\\"\\\\\\n\\u0000é'
    assert string_piece("a\n") + string_piece("b") == string_piece("a\nb")
