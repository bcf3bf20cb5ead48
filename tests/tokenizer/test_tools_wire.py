"""Tools and calls, to and from their messages."""

from __future__ import annotations

from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, Unsupported
from services.tokenizer import wire
from services.tokenizer.events import Parsed
from services.tokenizer.output_parsers.port import ToolCallPiece
from services.tokenizer.tool_use import ToolMode
from services.tokenizer.tools_wire import check_tool_results, pieces, tool_use
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2

ToolChoice = chat_pb2.ToolChoice
TOOL = chat_pb2.Tool(name="f", description="", parameters_json='{"b": 1, "a": 2}')
CALL = chat_pb2.ToolCall(id="c", name="f", arguments_json="{}")


def chat(*messages: chat_pb2.ChatMessage, **fields: Any) -> chat_pb2.ChatPrompt:
    """A chat with tools."""
    return chat_pb2.ChatPrompt(messages=messages or [chat_pb2.ChatMessage(role="user", text="Hi")], **fields)


def choice(mode: ToolChoice.Mode.ValueType, name: str = "") -> ToolChoice:
    """A choice."""
    return ToolChoice(mode=mode, function_name=name)


@pytest.mark.parametrize(
    ("fields", "mode", "function"),
    [
        ({}, ToolMode.NONE, ""),
        ({"tools": [TOOL]}, ToolMode.AUTO, ""),
        ({"tools": [TOOL], "tool_choice": choice(ToolChoice.MODE_NONE)}, ToolMode.NONE, ""),
        ({"tools": [TOOL], "tool_choice": choice(ToolChoice.MODE_REQUIRED)}, ToolMode.REQUIRED, ""),
        ({"tools": [TOOL], "tool_choice": choice(ToolChoice.MODE_FUNCTION, "f")}, ToolMode.FUNCTION, "f"),
    ],
)
def test_modes(fields: dict[str, Any], mode: ToolMode, function: str) -> None:
    """Unspecified is auto with tools and none without; calls may be parallel unless that is refused."""
    use = tool_use(chat(**fields))
    assert (use.mode, use.function, use.parallel) == (mode, function, True)
    assert not tool_use(chat(parallel_tool_calls=False, **fields)).parallel


def test_tools_keep_what_was_written() -> None:
    """Names, descriptions, even empty ones, and the order of members reach the template."""
    assert tool_use(chat(tools=[TOOL, chat_pb2.Tool(name="g")])).template_objects == [
        {"type": "function", "function": {"name": "f", "description": "", "parameters": {"b": 1, "a": 2}}},
        {"type": "function", "function": {"name": "g", "parameters": {}}},
    ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [chat_pb2.Tool()]}, "tools[0].name"),
        ({"tools": [chat_pb2.Tool(name="f" * 257)]}, "tools[0].name"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [chat_pb2.Tool(name=f"f{index}") for index in range(129)]}, "tools"),
        *(
            ({"tools": [chat_pb2.Tool(name="f", parameters_json=text)]}, "tools[0].parameters")
            for text in ("[]", "{", '{"type": "array"}', "[" * 100_000, '{"not": ' * 65 + "1" + "}" * 65)
        ),
        ({"tool_choice": choice(ToolChoice.MODE_REQUIRED)}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": choice(ToolChoice.MODE_FUNCTION)}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": choice(ToolChoice.MODE_FUNCTION, "g")}, "tool_choice"),
    ],
)
def test_malformed_tools(fields: dict[str, Any], param: str) -> None:
    """This tier checks for itself, and names the place."""
    with pytest.raises(InvalidRequest) as caught:
        tool_use(chat(**fields))
    assert caught.value.param == param


def test_a_result_needs_a_call() -> None:
    """A tool message answers a call of a message before it; one that nobody made is refused."""
    calling = chat_pb2.ChatMessage(role="assistant", tool_calls=[CALL])
    result = chat_pb2.ChatMessage(role="tool", text="1", tool_call_id="c")
    check_tool_results(chat(calling, result, result))
    for messages in ([result], [result, calling], [calling, chat_pb2.ChatMessage(role="tool", text="1")]):
        with pytest.raises(InvalidRequest):
            check_tool_results(chat(*messages))


@pytest.mark.parametrize("mode", [ToolChoice.MODE_REQUIRED, ToolChoice.MODE_FUNCTION])
def test_the_engine_enforces_calls(mode: ToolChoice.Mode.ValueType) -> None:
    """Where calls must be made, the engine gets a schema for the output; else its request has none."""
    asked = chat(tools=[TOOL], tool_choice=choice(mode, "f"))
    spec = wire.text_spec(text_pb2.GenerateRequest(chat=asked))
    sent = spec.engine_request([1], 0, None).sampling_params
    assert sent.structured_output.WhichOneof("constraint") == "json_schema_json"
    free = wire.text_spec(text_pb2.GenerateRequest(chat=chat(tools=[TOOL])))
    assert not free.engine_request([1], 0, None).sampling_params.HasField("structured_output")


def test_two_constraints_are_refused() -> None:
    """An output cannot conform to a schema and be a call too; without tools called, it can."""
    params = sampling_pb2.SamplingParams(structured_output=sampling_pb2.StructuredOutput(regex="a"))
    with pytest.raises(Unsupported):
        wire.text_spec(text_pb2.GenerateRequest(chat=chat(tools=[TOOL]), sampling_params=params))
    quiet = chat(tools=[TOOL], tool_choice=choice(ToolChoice.MODE_NONE))
    spec = wire.text_spec(text_pb2.GenerateRequest(chat=quiet, sampling_params=params))
    assert spec.engine_request([1], 0, None).sampling_params.structured_output.regex == "a"
    assert spec.chat_output is None, "all of a constrained output is content"


def test_pieces() -> None:
    """Id and name are set in the first piece only."""
    parsed = Parsed("", [ToolCallPiece(0, "", "c", "f"), ToolCallPiece(0, "{}")])
    first, second = pieces(parsed)
    assert (first.index, first.id, first.name, first.arguments_json) == (0, "c", "f", "")
    assert not second.HasField("id") and not second.HasField("name") and second.arguments_json == "{}"
