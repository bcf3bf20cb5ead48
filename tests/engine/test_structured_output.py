from __future__ import annotations

import json

import pytest

from services.chassis.errors import InvalidRequest
from services.engine.structured_output import (
    MAX_CHOICES,
    MAX_LIST_BOUNDS,
    MAX_NESTING,
    MAX_TEXT_BYTES,
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutput,
    check_structured_output,
)


def nested(depth: int) -> str:
    """A schema of objects within objects."""
    return '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)


@pytest.mark.parametrize(
    "output",
    [
        JsonObject(),
        JsonSchema('{"type": "object"}'),
        JsonSchema(nested(MAX_NESTING)),
        JsonSchema(json.dumps({"items": {"minItems": MAX_LIST_BOUNDS - 1}, "maxItems": 1})),
        JsonSchema('{"type": "string", "maxLength": 100000000}'),
        JsonSchema('{"properties": {"minItems": {"type": "array"}}, "maxItems": null}'),
        Regex("a" * MAX_TEXT_BYTES),
        Grammar('root ::= "a"'),
        Choice(("x",) * MAX_CHOICES),
        StructuralTag('{"structures": [], "triggers": []}'),
    ],
)
def test_what_fits_passes(output: StructuredOutput) -> None:
    """Constraints up to the limits are left to the engine."""
    check_structured_output(output)


@pytest.mark.parametrize(
    ("output", "says"),
    [
        (JsonSchema(""), "JSON schema is empty"),
        (JsonSchema("{"), "no valid JSON"),
        (JsonSchema("[" * 60_000), "no valid JSON"),
        (JsonSchema("[]"), "no JSON object"),
        (JsonSchema("true"), "no JSON object"),
        (JsonSchema(nested(MAX_NESTING + 1)), f"more than {MAX_NESTING} deep"),
        (JsonSchema('{"allOf": ' + "[" * MAX_NESTING + "]" * MAX_NESTING + "}"), f"more than {MAX_NESTING} deep"),
        (JsonSchema(json.dumps({"maxItems": MAX_LIST_BOUNDS + 1})), f"lists of {MAX_LIST_BOUNDS + 1} items"),
        (JsonSchema(json.dumps({"anyOf": [{"minItems": 1000}] * 21})), "lists of 21000 items"),
        (JsonSchema('{"maxItems": 1e400}'), "lists of inf items"),
        (Regex("  "), "regex is empty"),
        (Regex("a\0"), "NUL"),
        (Regex("a" * 100_000), f"regex has 100000 bytes; at most {MAX_TEXT_BYTES}"),
        (Regex("é" * 40_000), "regex has 80000 bytes"),
        (Grammar("a" * (MAX_TEXT_BYTES + 1)), "grammar has"),
        (Choice(()), "choice has 0 strings"),
        (Choice(("x",) * (MAX_CHOICES + 1)), f"choice has {MAX_CHOICES + 1} strings"),
        (Choice(("a", "")), "empty string"),
        (Choice(("x" * MAX_TEXT_BYTES, "y")), "choice has"),
        (StructuralTag("x"), "no valid JSON"),
    ],
)
def test_what_does_not_fit_is_refused(output: StructuredOutput, says: str) -> None:
    """What is empty, malformed, deep or large is refused by a text that says which, before a library sees it."""
    with pytest.raises(InvalidRequest, match=says) as refused:
        check_structured_output(output)
    assert refused.value.param == "structured_output"
