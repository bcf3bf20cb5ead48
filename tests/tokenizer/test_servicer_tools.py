"""Tools and reasoning over gRPC: Qwen 3's tokenizer before an engine that says chosen ids."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.chassis.errors import Unsupported
from services.engine.port import Limits
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.fakes.scripted_engine import Shape
from tests.tokenizer.conftest import DirectoryOf
from tests.tokenizer.engine_fixtures import Answer, TextTier, running_tiers, sampling, until
from tests.tokenizer.text_link import text_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAGS = {"<tool_call>": 151657, "</tool_call>": 151658, "<think>": 151667, "</think>": 151668}
END = 151645
SHAPE = Shape(
    limits=Limits(context_length=2048, vocab_size=151936, max_logprobs=20, supports_priority=False),
    end_token_ids=(END,),
)
TOOL = chat_pb2.Tool(name="f", parameters_json='{"type": "object"}')
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
USER = chat_pb2.ChatMessage(role="user", text="Hi")
TOOL_CALLS = sampling_pb2.FINISH_REASON_TOOL_CALLS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(directory_of: DirectoryOf) -> AsyncIterator[TextTier]:
    """Both tiers."""
    async with running_tiers(directory_of("qwen3"), shape=SHAPE) as tier:
        yield tier


@pytest_asyncio.fixture(loop_scope="module")
async def tier(running: TextTier) -> AsyncIterator[TextTier]:
    """Both tiers. Within 1 s of a test's end nothing is left of what it started."""
    yield running
    await until(running.idle, 1)


def say(tier: TextTier, text: str) -> sampling_pb2.SamplingParams:
    """Parameters with which the engine says a text, its tags as the tokens that the model emits, and ends."""

    def ids_of(text: str) -> list[int]:
        for tag, token_id in TAGS.items():
            before, found, after = text.partition(tag)
            if found:
                return [*ids_of(before), token_id, *ids_of(after)]
        return tier.encode(text) if text else []

    tier.engine.lines.by_seed[7] = [*ids_of(text), END]
    return sampling(seed=7)


def calls(answer: Answer) -> list[tuple[str, str]]:
    """Names and arguments of the calls; ids are there once, and all differ."""
    found: list[tuple[str, str]] = []
    pieces = [piece for delta in answer.deltas for piece in delta.tool_calls]
    for piece in pieces:
        if piece.HasField("id"):
            found.append((piece.name, ""))
        name, arguments = found[piece.index]
        found[piece.index] = (name, arguments + piece.arguments_json)
    assert len({piece.id for piece in pieces if piece.HasField("id")}) == len(found)
    return found


def reasoning(answer: Answer) -> str:
    """All reasoning."""
    return "".join(delta.reasoning for delta in answer.deltas)


async def test_reasoning_content_and_calls(tier: TextTier) -> None:
    """Over Generate and over the link alike, each part comes as its own, token by token, with the reason."""
    request = text_pb2.GenerateRequest(
        chat=chat_pb2.ChatPrompt(messages=[USER], tools=[TOOL]),
        sampling_params=say(tier, f"<think>\nHm.\n</think>\n\nI look.\n{CALL}\n{CALL}"),
    )
    alone = await tier.generate(request)
    async with text_link(tier.stub) as link:
        linked = await link.start(1, request)
        await until(lambda: bool(linked.finishes))
    for answer in (alone, linked):
        assert (reasoning(answer), answer.text()) == ("\nHm.\n", "\n\nI look.\n")
        assert calls(answer) == [("f", '{"a": 1}')] * 2
        assert answer.finish.reason == TOOL_CALLS
        assert answer.token_ids() == tier.engine.lines.by_seed[7]
        assert answer.finish.usage.completion_tokens == len(answer.token_ids())
        assert 5 < answer.finish.usage.reasoning_tokens < 12
    pieces = [piece for delta in alone.deltas for piece in delta.tool_calls if piece.index == 0]
    assert len(pieces) > 3, "the arguments stream"


async def test_without_tools_calls_are_text(tier: TextTier) -> None:
    """Where no tools are given, or none may be called, a call's text is the answer's, and the prompt shows no tools."""
    params = say(tier, CALL)
    none = chat_pb2.ToolChoice(mode=chat_pb2.ToolChoice.MODE_NONE)
    for chat in (
        chat_pb2.ChatPrompt(messages=[USER]),
        chat_pb2.ChatPrompt(messages=[USER], tools=[TOOL], tool_choice=none),
    ):
        answer = await tier.generate(text_pb2.GenerateRequest(chat=chat, sampling_params=params))
        assert (answer.text(), calls(answer), answer.finish.reason) == (CALL, [], sampling_pb2.FINISH_REASON_STOP)
        rendered = await tier.stub.RenderChat(text_pb2.RenderChatRequest(chat=chat))
        assert "tools" not in rendered.text
    rendered = await tier.stub.RenderChat(
        text_pb2.RenderChatRequest(chat=chat_pb2.ChatPrompt(messages=[USER], tools=[TOOL]))
    )
    assert '{"name": "f", "parameters": {"type": "object"}}' in rendered.text


async def test_text_prompts_are_not_parsed(tier: TextTier) -> None:
    """A completion's text is as the model wrote it, tags and all."""
    request = text_pb2.GenerateRequest(
        text=text_pb2.TextPrompt(text="Hi"), sampling_params=say(tier, f"<think>a</think>{CALL}")
    )
    answer = await tier.generate(request)
    assert answer.text() == f"<think>a</think>{CALL}"
    assert all(not delta.reasoning for delta in answer.deltas)


async def test_a_template_may_open_the_reasoning(tier: TextTier) -> None:
    """A prompt that ends with the opening tag makes the output begin with reasoning."""
    chat = chat_pb2.ChatPrompt(
        messages=[USER, chat_pb2.ChatMessage(role="assistant", text="<think>\nWell")], continue_final_message=True
    )
    answer = await tier.generate(text_pb2.GenerateRequest(chat=chat, sampling_params=say(tier, ", yes.</think>No.")))
    assert (reasoning(answer), answer.text()) == (", yes.", "No.")


async def test_no_parallel_calls(tier: TextTier) -> None:
    """With parallel_tool_calls false the engine stops where a second call begins."""
    chat = chat_pb2.ChatPrompt(messages=[USER], tools=[TOOL], parallel_tool_calls=False)
    answer = await tier.generate(
        text_pb2.GenerateRequest(chat=chat, sampling_params=say(tier, f"{CALL}\n{CALL}{'and on ' * 50}"))
    )
    assert (calls(answer), answer.text(), answer.finish.reason) == ([("f", '{"a": 1}')], "", TOOL_CALLS)


async def test_log_probabilities_go_with_their_tokens(tier: TextTier) -> None:
    """None lost and none doubled, in reasoning and calls too."""
    params = say(tier, f"<think>Hm.</think>I look.{CALL}")
    params.logprobs = 1
    chat = chat_pb2.ChatPrompt(messages=[USER], tools=[TOOL])
    answer = await tier.generate(text_pb2.GenerateRequest(chat=chat, sampling_params=params))
    assert calls(answer) == [("f", '{"a": 1}')]
    for delta in answer.deltas:
        assert len(delta.logprobs.logprobs.logprobs) == len(delta.logprobs.token_bytes) == len(delta.token_ids)
    told = b"".join(token for delta in answer.deltas for token in delta.logprobs.token_bytes)
    assert told.decode() == f"<think>Hm.</think>I look.{CALL}<|im_end|>"


async def test_an_unknown_result_is_refused(tier: TextTier) -> None:
    """A tool message that answers no call never reaches the engine."""
    chat = chat_pb2.ChatPrompt(messages=[USER, chat_pb2.ChatMessage(role="tool", text="1", tool_call_id="c")])
    answer = await tier.generate(text_pb2.GenerateRequest(chat=chat))
    assert answer.error is not None and answer.error.param == "messages[1].tool_call_id"


async def test_two_constraints_are_refused(tier: TextTier) -> None:
    """Structured output beside tools that may be called is refused by name."""
    params = sampling(structured_output=sampling_pb2.StructuredOutput(regex="a"))
    chat = chat_pb2.ChatPrompt(messages=[USER], tools=[TOOL])
    answer = await tier.generate(text_pb2.GenerateRequest(chat=chat, sampling_params=params))
    assert isinstance(answer.error, Unsupported)
