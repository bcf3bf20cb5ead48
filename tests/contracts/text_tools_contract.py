"""The part of the text service's contract about tools that must be called. Their schemas leave the model no choice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from services.chassis.errors import InvalidRequest
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.contracts.live_text import LiveText
from tests.contracts.text_logprobs_contract import both_ways, joined

ARGUMENTS = {"city": "Genève", "days": [1, 2]}
Choice = chat_pb2.ToolChoice


def tool(name: str, arguments: Mapping[str, object]) -> chat_pb2.Tool:
    """A function that takes these arguments and no others."""
    schema = {
        "type": "object",
        "properties": {key: {"const": value} for key, value in arguments.items()},
        "required": list(arguments),
        "additionalProperties": False,
    }
    return chat_pb2.Tool(name=name, description="Looks it up.", parameters_json=json.dumps(schema))


TOOLS = [tool("get_weather", ARGUMENTS), tool("get_time", {"zone": "CET"})]


def calling(choice: Choice, tools: list[chat_pb2.Tool], **fields: Any) -> text_pb2.GenerateRequest:
    """A chat with tools."""
    chat = chat_pb2.ChatPrompt(
        messages=[chat_pb2.ChatMessage(role="user", text="What is the weather?")],
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=False,
    )
    params = sampling_pb2.SamplingParams(temperature=0, max_tokens=200, logprobs=0)
    return text_pb2.GenerateRequest(chat=chat, sampling_params=params, **fields)


class TextToolsContract:
    async def test_a_named_function_is_called(self, text: LiveText) -> None:
        """Every choice is one call of it, with an id of its own, arguments of its schema and no text; the end says
        so, and each token has its log probability."""
        choice = Choice(mode=Choice.MODE_FUNCTION, function_name="get_weather")
        ids = set()
        for record in await both_ways(text, calling(choice, TOOLS, n=2)):
            for index in range(2):
                ((call_id, name, arguments),) = record.calls(index)
                ids.add(call_id)
                assert (name, json.loads(arguments)) == ("get_weather", ARGUMENTS)
                assert (record.text(index), record.reasoning(index)) == ("", "")
                assert record.finishes[index].reason == sampling_pb2.FINISH_REASON_TOOL_CALLS
                assert len(joined(record.logprobs(index)).token_bytes) == len(record.token_ids(index))
        assert len(ids) == 4

    async def test_a_call_is_required(self, text: LiveText) -> None:
        """With `required` the answer is one call of one of the tools, where parallel calls are off."""
        for record in await both_ways(text, calling(Choice(mode=Choice.MODE_REQUIRED), TOOLS)):
            ((_, name, arguments),) = record.calls()
            assert json.loads(arguments) == {"get_weather": ARGUMENTS, "get_time": {"zone": "CET"}}[name]
            assert record.text() == ""
            assert record.finishes[0].reason == sampling_pb2.FINISH_REASON_TOOL_CALLS

    async def test_arguments_come_in_pieces(self, text: LiveText) -> None:
        """They stream: the first piece brings id and name long before the last."""
        choice = Choice(mode=Choice.MODE_FUNCTION, function_name="get_weather")
        for record in await both_ways(text, calling(choice, TOOLS)):
            pieces = [detail.tool_calls[0] for _, detail in record.details if detail.tool_calls]
            assert len(pieces) > 3
            assert [piece.HasField("id") for piece in pieces] == [True] + [False] * (len(pieces) - 1)

    async def test_a_cut_off_call_ends_by_length(self, text: LiveText) -> None:
        """Where max_tokens ends it, what came of the arguments is told, and the end does not say that it is whole."""
        request = calling(Choice(mode=Choice.MODE_FUNCTION, function_name="get_weather"), TOOLS)
        request.sampling_params.max_tokens = 3
        for record in await both_ways(text, request):
            assert record.finishes[0].reason == sampling_pb2.FINISH_REASON_LENGTH
            with pytest.raises(ValueError):
                json.loads("".join(arguments for _, _, arguments in record.calls()))

    async def test_none_is_called_where_none_may_be(self, text: LiveText) -> None:
        """With `none` the answer is text."""
        request = calling(Choice(mode=Choice.MODE_NONE), TOOLS)
        request.sampling_params.MergeFrom(sampling_pb2.SamplingParams(ignore_eos=True, max_tokens=8))
        for record in await both_ways(text, request):
            assert record.text() and record.calls() == []
            assert record.finishes[0].reason == sampling_pb2.FINISH_REASON_LENGTH

    @pytest.mark.parametrize(
        ("choice", "tools", "param"),
        [
            (Choice(mode=Choice.MODE_REQUIRED), [], "tool_choice"),
            (Choice(mode=Choice.MODE_FUNCTION, function_name="f"), TOOLS, "tool_choice"),
            (Choice(), [tool("", {})], "tools[0].name"),
            (Choice(), [tool("f", {}), tool("f", {})], "tools"),
            (Choice(), [chat_pb2.Tool(name="f", parameters_json="{")], "tools[0].parameters"),
        ],
        ids=["no tools", "unknown function", "no name", "one name twice", "no schema"],
    )
    async def test_bad_tools_are_refused(
        self, text: LiveText, choice: Choice, tools: list[chat_pb2.Tool], param: str
    ) -> None:
        """They fail by their field, before anything else came."""
        for record in await both_ways(text, calling(choice, tools)):
            assert type(record.error) is InvalidRequest and record.error.param == param
            assert (record.started, record.entries) == (None, [])
