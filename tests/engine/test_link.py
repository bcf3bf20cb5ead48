"""The link over real gRPC: many generations on one call."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from services.chassis import errors
from streamomni.engine.v1 import engine_pb2
from tests.chassis.waiting import until
from tests.engine.engine_service import engine_service, error_of_reading, generate_request
from tests.engine.link_caller import Link, linked
from tests.fakes.scripted_engine import Shape


async def test_many_generations_share_frames(tmp_path: Path) -> None:
    """Each stream is started once, gets all its tokens in order and one end; a step's tokens share a frame."""
    async with linked(tmp_path, tick_seconds=0.005) as (service, link):
        for stream_id in range(20):
            await link.start(stream_id, prompt_token_ids=[stream_id, 1], max_tokens=30, temperature=0.0)
        await until(lambda: all(link.ended(stream_id) for stream_id in range(20)))
        for stream_id in range(20):
            assert link.events[stream_id] == ["started", *["tokens"] * 30, "finished"]
        assert link.frames < 20 * 30 / 4
        alone = service.stub.Generate(generate_request(prompt_token_ids=[3, 1], max_tokens=30, temperature=0.0))
        token_ids = [token_id async for response in alone for token_id in response.delta.token_ids]
        assert link.tokens[3, 0] == token_ids
        await service.assert_idle()


async def test_choices_and_logprobs_on_the_link(tmp_path: Path) -> None:
    """Choices keep their tokens apart, and each token has its log probability."""
    async with linked(tmp_path) as (_, link):
        await link.start(1, n=3, max_tokens=4, logprobs=1, seed=5)
        await until(lambda: link.events[1].count("finished") == 3)
        assert [len(link.tokens[1, index]) for index in range(3)] == [4, 4, 4]
        assert len({tuple(link.tokens[1, index]) for index in range(3)}) == 3
        assert len(link.logprobs[1]) == 12


async def test_cancel_command_ends_one_stream(tmp_path: Path) -> None:
    """A cancelled stream gets nothing more and is free within 1 s; the other goes on."""
    async with linked(tmp_path) as (service, link):
        await link.start(1)
        await link.start(2)
        await until(lambda: link.events[1].count("tokens") > 2 and link.events[2].count("tokens") > 2)
        await link.cancel(1)
        await until(lambda: service.admission.active == 1, 1.0)
        await asyncio.sleep(0.05)
        got = len(link.events[1])
        more = len(link.events[2]) + 5
        await until(lambda: len(link.events[2]) > more)
        assert len(link.events[1]) == got and not link.ended(1)
        await link.cancel(1)
        await link.cancel(99)
        await link.cancel(2)
        await service.assert_idle()


async def test_cancel_in_the_same_breath_as_start(tmp_path: Path) -> None:
    """A stream that is cancelled right behind its start leaves nothing behind, however often."""
    async with linked(tmp_path) as (service, link):
        for stream_id in range(50):
            await link.start(stream_id)
            await link.cancel(stream_id)
        await link.start(100, max_tokens=3)
        await until(lambda: link.ended(100))
        await service.assert_idle()
        assert not any(link.ended(stream_id) for stream_id in range(50))


async def test_commands_in_one_message(tmp_path: Path) -> None:
    """Those of a batch are carried out in order; one that fails leaves the others."""
    async with linked(tmp_path) as (service, link):
        starts = [
            engine_pb2.StartGeneration(stream_id=number, request=generate_request(max_tokens=tokens))
            for number, tokens in enumerate((3, 0, 1000, 3))
        ]
        batch = [engine_pb2.GenerateManyRequest(start=start) for start in starts]
        batch.append(engine_pb2.GenerateManyRequest(cancel=engine_pb2.CancelGeneration(stream_id=2)))
        await link.call.write(engine_pb2.GenerateManyRequest(batch=batch))
        await until(lambda: all(link.ended(stream_id) for stream_id in (0, 1, 3)))
        assert [link.events[stream_id][-1] for stream_id in (0, 1, 3)] == ["finished", "failed", "finished"]
        await service.assert_idle()
        assert not link.ended(2)


@pytest.mark.parametrize("how", ["cancel", "half-close"])
async def test_closing_the_link_cancels_all(tmp_path: Path, how: str) -> None:
    """A link that ends, by cancel or in good order, has all its generations ended within 1 s, queued ones too."""
    async with linked(tmp_path, shape=Shape(max_num_seqs=2)) as (service, link):
        for stream_id in range(5):
            await link.start(stream_id)
        await until(lambda: service.model.status().load.waiting == 3)
        if how == "cancel":
            link.call.cancel()
        else:
            await link.call.done_writing()
        await service.assert_idle()
        assert service.count("streamomni:generations_cancelled_total") == 5


async def test_bad_start_leaves_the_others(tmp_path: Path) -> None:
    """A start that cannot be served fails its own stream with all details; the others do not notice."""
    async with linked(tmp_path, limit=2) as (service, link):
        await link.start(1)
        await link.start(2, prompt_token_ids=[49152])
        await link.start(3, model="x" * 100_000)
        await link.start(4, lora_name="a")
        await link.start(5, n=2)
        await until(lambda: len(link.failures) == 4)
        assert link.failures[2].reason == "TOKEN_ID_OUT_OF_VOCABULARY"
        assert isinstance(link.failures[2], errors.InvalidRequest) and link.failures[2].param == "prompt_token_ids"
        assert isinstance(link.failures[3], errors.NotFound)
        assert isinstance(link.failures[4], errors.Unsupported)
        assert link.failures[5].reason == "OVERLOADED" and link.failures[5].retry_after == 1.0
        more = len(link.events[1]) + 5
        await until(lambda: len(link.events[1]) > more)
        await link.cancel(1)
        await service.assert_idle()


async def test_broken_start_is_told_in_fixed_words(tmp_path: Path) -> None:
    """An unknown failure at the start of one stream fails that stream alone, and its text stays inside."""
    async with linked(tmp_path) as (service, link):
        add = service.engine.add
        service.engine.add = _raises  # type: ignore[method-assign]
        await link.start(1)
        await until(lambda: link.ended(1))
        assert isinstance(link.failures[1], errors.InternalError) and "secret" not in link.failures[1].message
        service.engine.add = add  # type: ignore[method-assign]
        await link.start(2, max_tokens=2)
        await until(lambda: link.ended(2))
        assert link.events[2][-1] == "finished"


def _raises(request: Any) -> None:
    raise RuntimeError("the secret")


async def test_stream_number_in_use_is_refused(tmp_path: Path) -> None:
    """A second start under a live number fails that stream, and since `failed` is its end, nothing follows."""
    async with linked(tmp_path) as (service, link):
        await link.start(1)
        await until(lambda: link.events[1].count("tokens") > 1)
        await link.start(1)
        await until(lambda: link.ended(1))
        assert isinstance(link.failures[1], errors.InvalidRequest) and link.failures[1].param == "stream_id"
        await service.assert_idle()
        await asyncio.sleep(0.05)
        assert link.events[1][-1] == "failed" and link.events[1].count("failed") == 1


async def test_empty_command_ends_the_link(tmp_path: Path) -> None:
    """A command that holds neither start nor cancel is not ignored: the link ends as INVALID_ARGUMENT."""
    async with engine_service(tmp_path) as service:
        link = Link(service)
        await link.start(1)
        await link.call.write(engine_pb2.GenerateManyRequest())
        code, error = await error_of_reading(link.call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT and "neither start nor cancel" in error.message
        await service.assert_idle()


async def test_deadline_on_the_link(tmp_path: Path) -> None:
    """A stream's own deadline fails it alone."""
    async with linked(tmp_path) as (service, link):
        await link.start(1, deadline_ms=100)
        await link.start(2)
        await until(lambda: link.ended(1))
        assert isinstance(link.failures[1], errors.DeadlineExceeded)
        assert not link.ended(2) and service.admission.active == 1


async def test_death_of_the_engine_fails_streams_and_not_the_link(tmp_path: Path) -> None:
    """When the engine dies all streams fail once; the link stands, refuses meanwhile, and serves when it is back."""
    async with linked(tmp_path, reload_seconds=(0.3,)) as (service, link):
        await link.start(1)
        await link.start(2)
        await until(lambda: link.events[2].count("tokens") > 1)
        service.engine.die()
        await until(lambda: link.ended(1) and link.ended(2))
        assert [link.failures[stream_id].reason for stream_id in (1, 2)] == ["ENGINE_FAILED"] * 2
        await link.start(3)
        await until(lambda: link.ended(3))
        assert isinstance(link.failures[3], errors.Unavailable)
        await service.until_ready()
        await link.start(4, max_tokens=2)
        await until(lambda: link.ended(4))
        assert link.events[4] == ["started", "tokens", "tokens", "finished"]


async def test_two_links_are_apart(tmp_path: Path) -> None:
    """The same stream number on two links means two streams, and one link's end leaves the other alone."""
    async with linked(tmp_path) as (service, link):
        other = Link(service)
        await other.start(1)
        await link.start(1)
        await until(lambda: link.events[1].count("tokens") > 1 and service.admission.active == 2)
        other.call.cancel()
        await until(lambda: service.admission.active == 1, 1.0)
        more = len(link.events[1]) + 5
        await until(lambda: len(link.events[1]) > more)


async def test_sampling_reaches_the_engine_unchanged(tmp_path: Path) -> None:
    """Every field of a request arrives at the port with the value that was sent."""
    seen: list[Any] = []

    def script(request: Any) -> Any:
        seen.append(request)
        while True:
            yield 1

    async with linked(tmp_path, script=script) as (_, link):
        fields = {
            "temperature": 0.5, "top_p": 0.25, "top_k": 3, "min_p": 0.125, "presence_penalty": -1.0,
            "frequency_penalty": 1.5, "repetition_penalty": 1.25, "seed": -(2**63), "max_tokens": 7, "min_tokens": 2,
        }  # fmt: skip
        await link.start(
            1, stop_token_ids=[9, 8], logit_bias={4: -2.0}, allowed_token_ids=[1, 4], logprobs=0, prompt_logprobs=2,
            cache_salt="salt", traceparent="00-1-2-01", **fields,
        )  # fmt: skip
        await until(lambda: link.ended(1))
    request = seen[-1]
    sampling = request.sampling
    assert {name: getattr(sampling, name) for name in fields} == fields
    assert (sampling.stop_token_ids, sampling.allowed_token_ids) == ((9, 8), (1, 4))
    assert (sampling.logit_bias, sampling.logprobs, sampling.prompt_logprobs) == ({4: -2.0}, 0, 2)
    assert (request.cache_salt, request.traceparent, request.priority) == ("salt", "00-1-2-01", 0)
