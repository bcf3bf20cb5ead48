"""Log probabilities and the echoed prompt from the engine to a caller of the text service, over both of its ways."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.chassis.errors import InvalidRequest
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.tokenizer.engine_fixtures import END, Answer, TextTier, asking, running_tiers, sampling, until
from tests.tokenizer.text_link import text_link

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "The quick 🦙 jumps"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tier(smollm2: Path) -> AsyncIterator[TextTier]:
    """Both tiers."""
    async with running_tiers(smollm2) as running:
        yield running


async def both_ways(tier: TextTier, request: text_pb2.GenerateRequest) -> Answer:
    """The answer of the public call, after checking that the link gives the same."""
    answer = await tier.generate(request)
    async with text_link(tier.stub) as link:
        other = await link.start(1, request)
        await until(lambda: len(other.finishes) == len(answer.finishes) or other.error is not None)
    assert other.started == answer.started
    for index in answer.finishes:
        assert columns(other, index) == columns(answer, index)
        assert other.text(index) == answer.text(index)
    return answer


def columns(answer: Answer, index: int = 0) -> list[tuple[bytes, float, int, int]]:
    """Bytes, log probability, rank and offset of each token of a choice; each delta's belong to its ids."""
    rows = []
    for delta in answer.deltas:
        told = delta.logprobs
        if delta.index != index or not delta.HasField("logprobs"):
            continue
        assert len(told.token_bytes) == len(delta.token_ids)
        assert len(told.top_token_bytes) == len(told.logprobs.top_token_ids)
        assert len(told.logprobs.top_token_ids) == told.logprobs.top_count * len(delta.token_ids)
        rows += list(zip(told.token_bytes, told.logprobs.logprobs, told.logprobs.ranks, told.text_offsets, strict=True))
    return rows


@pytest.mark.parametrize("stop", [[], ["umps", "mpsx"]])
async def test_each_token_has_its_own(tier: TextTier, stop: list[str]) -> None:
    """Bytes of the tokens put together are the text and the end token, also while text is held back and where
    a stop string ends it."""
    ids = tier.encode(TEXT)
    answer = await both_ways(tier, asking(ids, sampling_params=sampling(logprobs=3), stop=stop))
    rows = columns(answer)
    assert len(rows) == len(answer.token_ids()) == answer.finish.usage.completion_tokens
    assert b"".join(row[0] for row in rows).decode() == TEXT + ("" if stop else "<|im_end|>")
    assert {row[1:3] for row in rows} == {(-0.5, 1)}
    assert [row[3] for row in rows][:2] == [0, 3]
    (top_count,) = {delta.logprobs.logprobs.top_count for delta in answer.deltas}
    assert top_count == 3


async def test_zero_alternatives(tier: TextTier) -> None:
    """Log probabilities without alternatives are not the same as none at all."""
    ids = tier.encode(TEXT)
    assert len(columns(await both_ways(tier, asking(ids, sampling_params=sampling(logprobs=0))))) == len(ids) + 1
    plain = await tier.generate(asking(ids))
    assert not any(delta.HasField("logprobs") for delta in plain.deltas)
    assert not plain.started[0].HasField("prompt_logprobs")


async def test_all_choices_have_theirs(tier: TextTier) -> None:
    """With several choices each has the numbers of its own tokens."""
    answer = await both_ways(tier, asking(tier.encode(TEXT), n=3, sampling_params=sampling(logprobs=1)))
    assert columns(answer, 0) == columns(answer, 1) == columns(answer, 2)
    assert len(columns(answer, 2)) == len(answer.token_ids(2))


async def test_the_prompt_is_told_at_the_start(tier: TextTier) -> None:
    """Echo gives the prompt's text once, prompt_logprobs its tokens' numbers from the second on."""
    ids = tier.encode(TEXT)
    request = asking(ids, echo=True, sampling_params=sampling(prompt_logprobs=2, max_tokens=1))
    (started,) = (await both_ways(tier, request)).started
    assert started.prompt_text == TEXT
    told = started.prompt_logprobs
    assert (started.prompt_first_token_bytes + b"".join(told.token_bytes)).decode() == TEXT
    assert len(told.logprobs.logprobs) == len(told.text_offsets) == len(ids) - 1
    assert len(told.top_token_bytes) == 2 * (len(ids) - 1)
    assert told.text_offsets[0] == 3


async def test_a_text_prompt_is_echoed_as_it_was_sent(tier: TextTier) -> None:
    """Also where it spells control tokens, which decoding would hide."""
    text = "a<|im_end|>b"
    request = text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text=text), echo=True)
    (started,) = (await both_ways(tier, request)).started
    assert started.prompt_text == text
    ids = asking([500, END, 501], echo=True)
    assert "<|im_end|>" not in (await both_ways(tier, ids)).started[0].prompt_text
    ids.skip_special_tokens = False
    assert "<|im_end|>" in (await both_ways(tier, ids)).started[0].prompt_text


async def test_what_is_told_of_a_long_prompt_holds_nobody_up(tier: TextTier) -> None:
    """More than waits for a slow reader may come of a prompt at once, and the generation goes on behind it."""
    ids = [500 + number for number in range(2000)]
    answer = await both_ways(tier, asking(ids, echo=True, sampling_params=sampling(prompt_logprobs=20, max_tokens=9)))
    assert answer.started[0].ByteSize() > 256 * 1024
    assert answer.token_ids() == ids[:9]


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (
            text_pb2.GenerateRequest(
                chat=chat_pb2.ChatPrompt(messages=[chat_pb2.ChatMessage(role="user", text="a")]), echo=True
            ),
            "echo",
        ),
        (text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="a", suffix="b"), echo=True), "echo"),
        (text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="a", suffix="b")), "suffix"),
        (asking([500], sampling_params=sampling(logprobs=21)), "logprobs"),
        (asking([500], sampling_params=sampling(prompt_logprobs=21)), "prompt_logprobs"),
    ],
)
async def test_what_cannot_be_told_is_refused(tier: TextTier, request_: text_pb2.GenerateRequest, param: str) -> None:
    """The error names the field; nothing is ignored."""
    error = (await tier.generate(request_)).error
    assert isinstance(error, InvalidRequest)
    assert error.param == param
