"""A model whose vocabulary is padded: its engine takes and gives ids that its tokenizer does not know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc.aio
import pytest
import pytest_asyncio

from services.chassis.errors import InvalidRequest
from services.chassis.status import error_of_call
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_engine import TINY_LIMITS, Shape
from tests.tokenizer.engine_fixtures import END, TextTier, asking, running_tiers, sampling, until

pytestmark = pytest.mark.asyncio(loop_scope="module")

KNOWN = 49152
PADDED = 49280


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tier(smollm2: Path) -> AsyncIterator[TextTier]:
    """Both tiers; the engine's vocabulary has 128 ids more than the tokenizer's."""
    async with running_tiers(smollm2, shape=Shape(limits=replace(TINY_LIMITS, vocab_size=PADDED))) as running:
        yield running
        await until(running.idle, 1)


async def test_padding_ids_are_served_and_have_no_text(tier: TextTier) -> None:
    """Prompt ids up to the engine's last reach it unchanged; those that come back keep their places among the ids,
    with no text, no bytes, and no harm to a character around them."""
    llama = tier.encode(" \N{LLAMA}")
    ids = [KNOWN, *llama[:2], PADDED - 1, *llama[2:], KNOWN]
    answer = await tier.generate(asking(ids, echo=True, sampling_params=sampling(logprobs=1, prompt_logprobs=0)))
    assert list(tier.engine.lines.requests[-1].prompt_token_ids) == ids
    assert answer.token_ids() == [*ids, END]
    assert answer.text() == answer.started[0].prompt_text == " \N{LLAMA}"
    told = {
        token_id: token_bytes
        for delta in answer.deltas
        for token_id, token_bytes in zip(delta.token_ids, delta.logprobs.token_bytes, strict=True)
    }
    assert told[KNOWN] == told[PADDED - 1] == b""
    assert answer.error is None


async def test_the_first_id_beyond_the_engines_is_refused(tier: TextTier) -> None:
    """It is refused before the engine sees it, with the ids that the engine takes."""
    computed = len(tier.engine.lines.requests)
    answer = await tier.generate(asking([1, PADDED]))
    assert isinstance(answer.error, InvalidRequest)
    assert answer.error.message == f"the prompt holds {PADDED}; token ids of this model are 0 to {PADDED - 1}"
    assert (answer.error.param, answer.error.reason) == ("prompt", "TOKEN_ID_OUT_OF_VOCABULARY")
    assert len(tier.engine.lines.requests) == computed


async def test_detokenize_takes_what_generate_gives(tier: TextTier) -> None:
    """Ids that an answer may hold are ids that Detokenize takes."""
    ids = [*tier.encode("Hi"), PADDED - 1]
    assert (await tier.stub.Detokenize(text_pb2.DetokenizeRequest(token_ids=ids))).text == "Hi"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await tier.stub.Detokenize(text_pb2.DetokenizeRequest(token_ids=[PADDED]))
    assert error_of_call(caught.value).param == "token_ids"
