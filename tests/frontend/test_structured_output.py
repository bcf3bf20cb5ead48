from __future__ import annotations

from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, ServiceError, Unsupported
from services.frontend.chat_request import parse_chat_request
from services.frontend.completion_request import parse_completion_request
from services.frontend.structured_output import MAX_CHARS, MAX_CHOICES, StructuredOutput
from services.frontend.wire import CallInfo, generate_requests
from streamomni.engine.v1.sampling_pb2 import StructuredOutput as Message

CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
SCHEMA = {"type": "object", "properties": {"z": {"type": "integer"}, "a": {"type": "string"}}}
SCHEMA_JSON = '{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"string"}}}'


def named(**changes: Any) -> dict[str, Any]:
    """OpenAI's field with a schema; None takes a member out."""
    json_schema = {"name": "answer", "strict": True, "schema": SCHEMA, **changes}
    members = {name: value for name, value in json_schema.items() if value is not None}
    return {"response_format": {"type": "json_schema", "json_schema": members}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"response_format": None, "structured_outputs": None, "guided_json": None}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {"type": "json_object"}}, Message(json_object=Message.AnyJsonObject())),
        (named(), Message(json_schema_json=SCHEMA_JSON)),
        (named(strict=None, description="of what"), Message(json_schema_json=SCHEMA_JSON)),
        (named(strict=False), Message(json_schema_json=SCHEMA_JSON)),
        (
            {"response_format": {"type": "structural_tag", "structures": [], "triggers": ["<f"]}},
            Message(structural_tag_json='{"type":"structural_tag","structures":[],"triggers":["<f"]}'),
        ),
        ({"structured_outputs": {"json": SCHEMA}}, Message(json_schema_json=SCHEMA_JSON)),
        ({"structured_outputs": {"json": '{"type": "string"}'}}, Message(json_schema_json='{"type": "string"}')),
        ({"structured_outputs": {"json_object": True}}, Message(json_object=Message.AnyJsonObject())),
        ({"structured_outputs": {"regex": "(a+)+b"}}, Message(regex="(a+)+b")),
        ({"structured_outputs": {"grammar": 'root ::= "a"'}}, Message(grammar='root ::= "a"')),
        ({"structured_outputs": {"choice": ["a", "b"]}}, Message(choice=Message.Choices(values=["a", "b"]))),
        ({"structured_outputs": {"structural_tag": "{}"}}, Message(structural_tag_json="{}")),
        ({"structured_outputs": {"regex": "a", "whitespace_pattern": None}}, Message(regex="a")),
        ({"guided_json": SCHEMA}, Message(json_schema_json=SCHEMA_JSON)),
        ({"guided_regex": "a"}, Message(regex="a")),
        ({"guided_choice": ["a"]}, Message(choice=Message.Choices(values=["a"]))),
        ({"guided_grammar": "g"}, Message(grammar="g")),
        ({"guided_regex": "a", "response_format": {"type": "text"}}, Message(regex="a")),
    ],
)
def test_each_name_gives_its_constraint(fields: dict[str, Any], expected: Message | None) -> None:
    """Chat and completions send the text service the same constraint, a schema with its keys in the caller's order."""
    for request in (
        parse_chat_request({**CHAT, **fields}),
        parse_completion_request({"model": "m", "prompt": "x", **fields}),
    ):
        (wire,) = generate_requests(request, CallInfo("r"))
        params = wire.message.sampling_params
        assert params.HasField("structured_output") is (expected is not None)
        if expected is not None:
            assert params.structured_output == expected


def test_it_keeps_the_callers_name() -> None:
    """The request knows by which field the constraint came, for errors that are found later."""
    asked = parse_chat_request({**CHAT, "guided_choice": ["a"]}).sampling.structured_output
    assert asked == StructuredOutput("guided_choice", "choice", choices=("a",))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": []}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        (named(name=""), "response_format.json_schema.name"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.name"),
        (named(name="a b"), "response_format.json_schema.name"),
        (named(name="ä"), "response_format.json_schema.name"),
        (named(name="x" * 65), "response_format.json_schema.name"),
        (named(schema="{}"), "response_format.json_schema.schema"),
        (named(strict="yes"), "response_format.json_schema.strict"),
        (named(description=1), "response_format.json_schema.description"),
        (named(schema={"maximum": 2**70}), "response_format.json_schema.schema"),
        (named(schema={"description": "x" * MAX_CHARS}), "response_format.json_schema.schema"),
        ({"structured_outputs": {}}, "structured_outputs"),
        ({"structured_outputs": "a"}, "structured_outputs"),
        ({"structured_outputs": {"regex": "a", "choice": ["a"]}}, "structured_outputs"),
        ({"structured_outputs": {"json": []}}, "structured_outputs.json"),
        ({"structured_outputs": {"json_object": False}}, "structured_outputs.json_object"),
        ({"structured_outputs": {"regex": 1}}, "structured_outputs.regex"),
        ({"structured_outputs": {"regex": ""}}, "structured_outputs.regex"),
        ({"structured_outputs": {"regex": "a" * 100_000}}, "structured_outputs.regex"),
        ({"structured_outputs": {"grammar": {}}}, "structured_outputs.grammar"),
        ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
        ({"structured_outputs": {"choice": "ab"}}, "structured_outputs.choice"),
        ({"structured_outputs": {"choice": ["a", ""]}}, "structured_outputs.choice"),
        ({"structured_outputs": {"choice": ["a"] * (MAX_CHOICES + 1)}}, "structured_outputs.choice"),
        ({"structured_outputs": {"structural_tag": {}}}, "structured_outputs.structural_tag"),
        ({"guided_choice": [1]}, "guided_choice"),
        ({"guided_json": 5}, "guided_json"),
        ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice"),
        ({"guided_regex": "a", "structured_outputs": {"regex": "a"}}, "guided_regex"),
        ({"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}}, "structured_outputs"),
    ],
)
def test_malformed_ones_are_refused(fields: dict[str, Any], param: str) -> None:
    """What is of a wrong type, empty, too large or given twice is refused, and the error names the member."""
    with pytest.raises(InvalidRequest) as refused:
        parse_chat_request({**CHAT, **fields})
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {"structured_outputs": {"regex": "a", "whitespace_pattern": " "}},
            "structured_outputs.whitespace_pattern",
        ),
        (
            {"structured_outputs": {"json": {}, "disable_any_whitespace": True}},
            "structured_outputs.disable_any_whitespace",
        ),
        ({"guided_regex": "a", "guided_decoding_backend": "outlines"}, "guided_decoding_backend"),
    ],
)
def test_options_that_are_not_served_are_refused(fields: dict[str, Any], param: str) -> None:
    """An option that would change the output is refused by its name."""
    with pytest.raises(Unsupported) as refused:
        parse_chat_request({**CHAT, **fields})
    assert refused.value.param == param


def test_errors_are_of_this_service() -> None:
    """Nesting beyond the parser's reach is refused like any other fault."""
    schema: dict[str, Any] = {}
    for _ in range(300):
        schema = {"a": schema}
    with pytest.raises(ServiceError):
        parse_chat_request({**CHAT, **named(schema=schema)})
