"""The public Generate: callers that leave, lag or ask for too much, and an engine that goes away."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import grpc.aio
import pytest
import pytest_asyncio

from services.chassis.errors import DeadlineExceeded, InvalidRequest, Overloaded, Unavailable
from services.chassis.status import error_of_call
from services.engine.port import Limits
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.fakes.scripted_engine import Shape
from tests.tokenizer.engine_fixtures import (
    Answer,
    TextTier,
    asking,
    endless,
    running_engine,
    running_text,
    running_tiers,
    until,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


LONG_CONTEXT = Limits(context_length=10**7, vocab_size=49152, max_logprobs=20, supports_priority=False)


def hard_text(characters: int) -> str:
    """A text that takes long to encode: 0.6 s a million characters."""
    return "".join(random.Random(1).choices([chr(code) for code in range(1, 256)], k=characters))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(smollm2: Path) -> AsyncIterator[TextTier]:
    """Both tiers. With a smaller context, megabytes of text would be refused by their length, without encoding."""
    limits = Limits(context_length=20_000, vocab_size=49152, max_logprobs=20, supports_priority=False)
    async with running_tiers(smollm2, shape=Shape(limits=limits)) as tier:
        yield tier


@pytest_asyncio.fixture(loop_scope="module")
async def tier(running: TextTier) -> AsyncIterator[TextTier]:
    """Both tiers. Within 1 s of a test's end nothing is left of what it started."""
    yield running
    await until(running.idle, 1)


@pytest.mark.parametrize("phase", ["queued", "decoding", "encoding"])
@pytest.mark.parametrize("way", ["cancel", "deadline"])
async def test_leaving_frees_the_engine(tier: TextTier, phase: str, way: str) -> None:
    """Within 1 s of a client's cancel or of its call's deadline both tiers are free, whatever the phase, and a
    request right behind is served at once."""
    others = [
        tier.stub.Generate(asking([500], sampling_params=endless())) for _ in range(64 if phase == "queued" else 0)
    ]
    if phase == "queued":
        await until(lambda: tier.engine.load.running == 64)
    request = asking([501], n=4, sampling_params=endless())
    if phase == "encoding":
        request = text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text=hard_text(2_000_000)))
    call = tier.stub.Generate(request, timeout=0.3 if way == "deadline" else None)
    await until(lambda: tier.admission.active > len(others))
    if phase == "decoding":
        await call.read()
    if phase == "queued":
        await until(lambda: tier.engine.load.waiting == 4)
    if way == "cancel":
        call.cancel()
    else:
        await asyncio.sleep(0.3)
    await until(lambda: tier.admission.active == tier.engine.admission.active == len(others), 1)
    await until(lambda: tier.engine.load.waiting == 0 and tier.engine.load.running == len(others), 1)
    for other in others:
        other.cancel()
    await until(tier.idle, 1)
    begin = time.monotonic()
    assert (await tier.generate(asking(tier.encode("next")))).text() == "next"
    assert time.monotonic() - begin < 1
    assert await call.code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


async def test_the_requests_own_deadline(tier: TextTier) -> None:
    """deadline_ms ends it with the tokens so far and an error; the greatest value of the field is no deadline."""
    answer = await tier.generate(asking([500], deadline_ms=200, sampling_params=endless()))
    assert isinstance(answer.error, DeadlineExceeded)
    assert answer.deltas and not answer.finishes
    await until(tier.idle, 1)
    assert (await tier.generate(asking(tier.encode("on"), deadline_ms=2**64 - 1))).text() == "on"


async def test_a_deadline_is_told_though_a_large_prompt_is_being_encoded(tier: TextTier) -> None:
    """The caller hears of it at the deadline, not when the encoding is done."""
    text = text_pb2.TextPrompt(text=hard_text(1_000_000))
    begin = time.monotonic()
    await tier.stub.Tokenize(text_pb2.TokenizeRequest(text=text.text))
    whole = time.monotonic() - begin
    begin = time.monotonic()
    answer = await tier.generate(text_pb2.GenerateRequest(text=text, deadline_ms=10))
    assert isinstance(answer.error, DeadlineExceeded)
    assert time.monotonic() - begin < max(0.5 * whole, 0.1)


async def test_a_large_prompt_does_not_hold_up_other_streams(tier: TextTier) -> None:
    """While megabytes are encoded and refused, the deltas of another stream keep flowing."""
    text = text_pb2.TextPrompt(text=hard_text(1_000_000))
    gaps: list[float] = []
    async with tier.streaming(asking([500], sampling_params=endless())) as call:
        large = asyncio.create_task(tier.generate(text_pb2.GenerateRequest(text=text, n=128)))
        begin = last = time.monotonic()
        async for _ in call:
            now = time.monotonic()
            gaps.append(now - last)
            last = now
            if large.done():
                break
        took = last - begin
    answer = await large
    assert isinstance(answer.error, InvalidRequest)
    assert answer.error.reason == "CONTEXT_LENGTH_EXCEEDED"
    # A loop that encodes itself has one gap as long as the whole.
    assert len(gaps) > 20 and max(gaps) < 0.5 * took


async def test_a_slow_reader_is_cancelled_while_others_go_on(smollm2: Path) -> None:
    """What waits for a reader is bounded: past that its generation is cancelled at the engine and, when it reads on,
    it gets what waited and then an error. Another stream is not held up."""
    shape = Shape(limits=LONG_CONTEXT, kv_cache_tokens=10**9)
    # A client that takes little before it reads.
    options = [("grpc.http2.lookahead_bytes", 65536), ("grpc.http2.bdp_probe", 0)]
    async with running_tiers(smollm2, shape=shape, tick_seconds=0.0) as tier:
        async with (
            grpc.aio.insecure_channel(f"127.0.0.1:{tier.port}", options=options) as channel,
            tier.streaming(asking([501], sampling_params=endless())) as other,
        ):
            seen = 0

            async def read() -> None:
                nonlocal seen
                async for _ in other:
                    seen += 1

            reading = asyncio.create_task(read())
            slow = text_pb2_grpc.TextServiceStub(channel).Generate(asking([500], n=60, sampling_params=endless()))
            await slow.initial_metadata()
            await until(lambda: tier.admission.active == 61)
            await until(lambda: tier.admission.active == 1, 20)
            await until(lambda: tier.engine.admission.active == 1, 1)
            before = seen
            await until(lambda: seen > before)
            answer = Answer()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async for response in slow:
                    answer.take(response)
            error = error_of_call(caught.value)
            assert isinstance(error, Unavailable) and "lags more than 262144 bytes" in error.message
            assert answer.deltas and not answer.finishes
            reading.cancel()
        await until(tier.idle, 1)


async def test_a_full_service_refuses(smollm2: Path) -> None:
    """Beyond its places a request is refused as overloaded with the time to wait, and a place that is given back
    serves again."""
    async with running_engine(smollm2) as engine, running_text(engine, max_generations=2) as tier:
        async with tier.streaming(asking([500], n=2, sampling_params=endless())):
            answer = await tier.generate(asking([501]))
            assert isinstance(answer.error, Unavailable)
            assert (answer.error.reason, answer.error.retry_after) == (Overloaded.default_reason, 1.0)
        await until(tier.idle, 1)
        assert (await tier.generate(asking([501]))).error is None


async def test_a_lost_engine_is_told_and_found_again(smollm2: Path) -> None:
    """The tokens so far, then an error and no finish; requests meanwhile are refused as unavailable, later ones
    served."""
    async with running_engine(smollm2) as engine:
        port = engine.port
        serving = running_text(engine)
        tier = await serving.__aenter__()
        answer = asyncio.create_task(tier.generate(asking([500], n=2, sampling_params=endless())))
        await until(lambda: engine.load.running == 2)
    lost = await answer
    assert isinstance(lost.error, Unavailable)
    assert lost.deltas and not lost.finishes
    assert tier.admission.active == 0
    meanwhile = await tier.generate(asking([500]))
    assert isinstance(meanwhile.error, Unavailable)
    assert (await tier.stub.ListModels(text_pb2.ListModelsRequest())).models == []
    async with running_engine(smollm2, port=port):
        await until(lambda: tier.link.connected and tier.models.ready, 10)
        assert (await tier.generate(asking(tier.encode("back")))).text() == "back"
        await serving.__aexit__(None, None, None)
