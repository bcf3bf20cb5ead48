"""A suffix through both tiers: what the engine computes, and what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.engine.port import Limits
from services.tokenizer.fill_in_the_middle import FillInTheMiddlePrompt, end_token_ids
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_engine import Shape
from tests.tokenizer.conftest import DirectoryOf
from tests.tokenizer.engine_fixtures import TextTier, running_tiers, sampling

pytestmark = pytest.mark.asyncio(loop_scope="module")

PREFIX, SUFFIX = "def f(x):\n    y = ", "\n    return y"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tier(directory_of: DirectoryOf) -> AsyncIterator[TextTier]:
    """Both tiers on Qwen's tokenizer."""
    limits = Limits(context_length=2048, vocab_size=151936, max_logprobs=20, supports_priority=False)
    async with running_tiers(directory_of("qwen3"), shape=Shape(limits=limits)) as running:
        yield running


async def test_the_engine_fills_the_gap(tier: TextTier) -> None:
    """The engine gets the model's own layout, the output ends where the gap does, and only the middle is told."""
    tokenizer = tier.models.find("").tokenizer
    middle = tokenizer.encode("x * 2")
    (pad, *_) = ends = end_token_ids(tokenizer.table.added_tokens)
    tier.engine.lines.by_seed[1] = [*middle, pad, *tokenizer.encode(" and so on")]
    text = text_pb2.TextPrompt(text=PREFIX, suffix=SUFFIX)
    answer = await tier.generate(text_pb2.GenerateRequest(text=text, sampling_params=sampling(seed=1)))
    assert answer.error is None
    assert (answer.text(), answer.token_ids()) == ("x * 2", [*middle, pad])
    assert answer.finish.stop_token_id == pad
    (asked,) = tier.engine.lines.requests
    assert list(asked.prompt_token_ids) == FillInTheMiddlePrompt(PREFIX, SUFFIX, True).token_ids(tokenizer)
    assert set(asked.sampling.stop_token_ids) == set(ends)
