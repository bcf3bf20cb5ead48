"""Format checks over gRPC: Qwen 3's tokenizer before an engine that says chosen ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from services.chassis.errors import InvalidRequest
from services.engine.port import Limits
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.fakes.scripted_engine import Shape
from tests.tokenizer.conftest import DirectoryOf
from tests.tokenizer.engine_fixtures import Answer, TextTier, running_tiers, sampling, until
from tests.tokenizer.text_link import text_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

THINK, THOUGHT, END = 151667, 151668, 151645
SHAPE = Shape(
    limits=Limits(context_length=2048, vocab_size=151936, max_logprobs=20, supports_priority=False),
    end_token_ids=(END,),
)
USER = chat_pb2.ChatMessage(role="user", text="Hi")
JSON, BLOCKS = text_pb2.FORMAT_CHECK_JSON, text_pb2.FORMAT_CHECK_CODE_BLOCKS


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


async def both_ways(tier: TextTier, reasoning: str, text: str, **fields: Any) -> list[Answer]:
    """The answer to a chat that the model answers with these texts, over Generate and over the link."""
    tier.engine.lines.by_seed[7] = [THINK, *tier.encode(reasoning), THOUGHT, *tier.encode(text), END]
    request = text_pb2.GenerateRequest(
        chat=chat_pb2.ChatPrompt(messages=[USER]), sampling_params=sampling(seed=7), **fields
    )
    alone = await tier.generate(request)
    async with text_link(tier.stub) as link:
        linked = await link.start(1, request)
        await until(lambda: bool(linked.finishes))
    return [alone, linked]


def faults(told: Any) -> list[tuple[int, int]]:
    """Checks and places of faults."""
    return [(fault.check, fault.position) for fault in told]


async def test_reported(tier: TextTier) -> None:
    """Faults of the content alone are told, in their delta and at the end; the answer stays whole."""
    text = '{"a": 1}\n```js\nf(]\n```\n'
    for answer in await both_ways(tier, "```js\n)\n```", text, format_checks=[JSON, BLOCKS]):
        assert answer.text() == text
        expected = [(JSON, 9), (BLOCKS, 17)]
        assert faults(fault for delta in answer.deltas for fault in delta.format_faults) == expected
        assert faults(answer.finish.format_faults) == expected
        assert answer.finish.format_faults[1].message == "']' does not close '('"
        assert answer.finish.reason == sampling_pb2.FINISH_REASON_STOP


async def test_stop(tier: TextTier) -> None:
    """With a stop the answer ends before the fault with content_filter, and the engine is cancelled."""
    answers = await both_ways(
        tier, "Hm.", '{"a": 1} and on' + " and on" * 200, format_checks=[JSON], stop_at_format_fault=True
    )
    for answer in answers:
        assert answer.text() == '{"a": 1} '
        assert answer.finish.reason == sampling_pb2.FINISH_REASON_CONTENT_FILTER
        assert faults(answer.finish.format_faults) == [(JSON, 9)]
        assert answer.finish.usage.completion_tokens < 30


async def test_right_content(tier: TextTier) -> None:
    """What is right has no faults and ends as ever, also with a stop."""
    for answer in await both_ways(tier, "{", '{"a": [1]}', format_checks=[JSON, BLOCKS], stop_at_format_fault=True):
        assert (answer.text(), faults(answer.finish.format_faults)) == ('{"a": [1]}', [])
        assert answer.finish.reason == sampling_pb2.FINISH_REASON_STOP


async def test_refused(tier: TextTier) -> None:
    """A stop without a check is refused by name."""
    chat = chat_pb2.ChatPrompt(messages=[USER])
    answer = await tier.generate(text_pb2.GenerateRequest(chat=chat, stop_at_format_fault=True))
    assert isinstance(answer.error, InvalidRequest) and answer.error.param == "stop_at_format_fault"
