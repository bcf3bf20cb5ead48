"""What every `TextService` makes of an answer with reasoning and calls, where a test can say what the model says.

A test class inherits `TextPartsContract` and provides the fixtures `text`, a service whose chats are taken apart as
Hermes' calls and reasoning between `<think>` tags, and `saying`, which makes a chat that the model answers with a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.contracts.live_text import LiveText
from tests.contracts.text_logprobs_contract import both_ways, joined
from tests.contracts.text_record import Record

Saying = Callable[[str], text_pb2.GenerateRequest]

STOP, LENGTH = sampling_pb2.FINISH_REASON_STOP, sampling_pb2.FINISH_REASON_LENGTH
CALLS = sampling_pb2.FINISH_REASON_TOOL_CALLS
WEATHER = chat_pb2.Tool(name="get_weather", parameters_json='{"type": "object"}')
CALL = '<tool_call> {"name": "get_weather", "arguments": {"city": "the sea", "days": [1, 2]}} </tool_call>'


def with_tools(request: text_pb2.GenerateRequest, parallel: bool = True) -> text_pb2.GenerateRequest:
    """The same chat with a tool that the model may call."""
    request.chat.MergeFrom(chat_pb2.ChatPrompt(tools=[WEATHER], parallel_tool_calls=parallel))
    return request


def assert_told(record: Record, reasoning: str, content: str, reason: int) -> None:
    """An answer of one choice consists of these words. Its white space is the tokenizer's."""
    assert record.error is None
    assert record.reasoning().split() == reasoning.split()
    assert record.text().split() == content.split()
    assert record.finishes[0].reason == reason


class TextPartsContract:
    async def test_reasoning_and_answer_are_told_apart(self, text: LiveText, saying: Saying) -> None:
        """Text between the tags is reasoning, the first word after them content; usage counts its tokens."""
        for record in await both_ways(text, saying("<think> why not </think> because 4")):
            assert_told(record, "why not", "because 4", STOP)
            usage = record.finishes[0].usage
            assert 0 < usage.reasoning_tokens < usage.completion_tokens

    async def test_without_reasoning_none_is_counted(self, text: LiveText, saying: Saying) -> None:
        """An answer that begins with words is content alone, also where it writes of the tags later."""
        for record in await both_ways(text, saying("just <think> so </think> well")):
            assert_told(record, "", "just <think> so </think> well", STOP)
            assert record.finishes[0].usage.reasoning_tokens == 0

    async def test_what_max_tokens_cuts_off_is_flushed(self, text: LiveText, saying: Saying) -> None:
        """An answer that ends within the reasoning has no content, and loses nothing of the reasoning."""
        request = saying("<think> why not </think> because 4")
        whole = (await text.generate(request)).token_ids()
        request.sampling_params.max_tokens = 3
        for record in await both_ways(text, request):
            assert record.token_ids() == whole[:3]
            assert record.text() == "" and record.finishes[0].reason == LENGTH

    async def test_stop_strings_are_of_the_content(self, text: LiveText, saying: Saying) -> None:
        """A stop string ends neither the reasoning nor a call's arguments, and does end the content."""
        request = with_tools(saying(f"<think> the sea </think> by the sea {CALL}"))
        request.stop.append("the sea")
        for record in await both_ways(text, request):
            assert_told(record, "the sea", "by", STOP)
            assert record.finishes[0].stop_string == "the sea" and record.calls() == []

    async def test_calls_of_the_models_own(self, text: LiveText, saying: Saying) -> None:
        """With tools and no choice, tagged JSON becomes calls with ids, names once and arguments as written; the
        text around them is content, and the end says that there were calls."""
        for record in await both_ways(text, with_tools(saying(f"<think> hm </think> I look. {CALL} {CALL}"))):
            assert_told(record, "hm", "I look.", CALLS)
            assert [name for _, name, _ in record.calls()] == ["get_weather"] * 2
            assert len({call_id for call_id, _, _ in record.calls()}) == 2
            for _, _, arguments in record.calls():
                assert json.loads(arguments) == {"city": "the sea", "days": [1, 2]}

    async def test_one_call_where_one_is_allowed(self, text: LiveText, saying: Saying) -> None:
        """Without parallel calls the answer ends where a second one begins."""
        for record in await both_ways(text, with_tools(saying(f"{CALL} {CALL} more"), parallel=False)):
            assert_told(record, "", "", CALLS)
            assert [name for _, name, _ in record.calls()] == ["get_weather"]

    async def test_without_tools_nothing_is_a_call(self, text: LiveText, saying: Saying) -> None:
        """Text that looks like a call stays text where there are no tools, and what is no call stays text with them."""
        for record in await both_ways(text, saying(CALL)):
            assert_told(record, "", CALL, STOP)
        for record in await both_ways(text, with_tools(saying("<tool_call> none </tool_call>"))):
            assert_told(record, "", "<tool_call> none </tool_call>", STOP)

    @pytest.mark.parametrize("count", [0, 2])
    async def test_every_token_has_its_logprob(self, text: LiveText, saying: Saying, count: int) -> None:
        """None is lost or doubled in reasoning, in calls and between them."""
        request = with_tools(saying(f"<think> hm </think> I look. {CALL}"))
        request.sampling_params.logprobs = count
        for record in await both_ways(text, request):
            assert len(joined(record.logprobs()).token_bytes) == len(record.token_ids())
