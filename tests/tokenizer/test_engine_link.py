"""The link to the engine: against the real engine tier over a scripted engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from services.chassis.channel import MESSAGE_LIMIT_BYTES
from services.chassis.errors import InternalError, InvalidRequest, Overloaded, TooLarge, Unavailable
from services.tokenizer.engine_link import EngineLink
from services.tokenizer.events import Finish, FinishReason, Usage
from tests.tokenizer.engine_fixtures import END, EngineTier, endless, running_engine, sampling, until
from tests.tokenizer.engine_sink import Sink, asking, running_link


@pytest.fixture
async def engine(smollm2: Path) -> AsyncIterator[EngineTier]:
    """A real engine tier over a scripted engine."""
    async with running_engine(smollm2, max_generations=8) as tier:
        yield tier


@pytest.fixture
async def link(engine: EngineTier) -> AsyncIterator[EngineLink]:
    """A link to it. When it is gone, the engine is idle."""
    async with running_link(engine.port) as running:
        yield running
    await until(engine.idle, 1)


async def test_a_stream_from_start_to_finish(link: EngineLink) -> None:
    """Started first, then the tokens in order, the end token marked as such, then the engine's counts."""
    sink = Sink()
    link.start(asking([10, 11, 12]), sink)
    await until(lambda: sink.ended)
    assert sink.starts == [(3, 0)]
    assert sink.token_ids == [10, 11, 12, END]
    assert [stops for _, stops in sink.deltas].count(True) == 1 and sink.deltas[-1][1]
    assert sink.finish == Finish(FinishReason.STOP, None, Usage(3, 4, 0))


async def test_a_cut_stream_ends_with_no_stop(link: EngineLink) -> None:
    """With max_tokens reached the last token is like any other."""
    sink = Sink()
    link.start(asking([10, 11, 12], sampling_params=sampling(max_tokens=2)), sink)
    await until(lambda: sink.ended)
    assert (sink.token_ids, any(stops for _, stops in sink.deltas)) == ([10, 11], False)
    assert sink.finish is not None and sink.finish.reason is FinishReason.LENGTH


async def test_a_stop_token_is_named(link: EngineLink) -> None:
    """The member of stop_token_ids that ended the stream is told."""
    sink = Sink()
    link.start(asking([10, 11, 12], sampling_params=sampling(stop_token_ids=[11])), sink)
    await until(lambda: sink.ended)
    assert sink.finish == Finish(FinishReason.STOP, 11, Usage(3, 2, 0))
    assert sink.deltas[-1][1]


async def test_cancelling_frees_the_engine(link: EngineLink, engine: EngineTier) -> None:
    """Within 1 s the engine has dropped the stream; cancelling again, or what has ended, does nothing."""
    cancelled, other = Sink(), Sink()
    cancel = link.start(asking([10, 11], sampling_params=endless()), cancelled)
    link.start(asking([20, 21], sampling_params=endless()), other)
    await until(lambda: bool(cancelled.deltas and other.deltas))
    cancel()
    told = len(cancelled.deltas)
    await until(lambda: engine.admission.active == 1 and engine.load.running == 1, 1)
    seen = len(other.deltas)
    await until(lambda: len(other.deltas) > seen)
    cancel()
    assert (len(cancelled.deltas), cancelled.ended) == (told, False)


async def test_refused_requests_harm_themselves_only(link: EngineLink, engine: EngineTier) -> None:
    """A bad request's error comes with its class, field and reason; streams before and after it are served."""
    before, bad, after = Sink(), Sink(), Sink()
    link.start(asking([10] * 50), before)
    link.start(asking([49152]), bad)
    link.start(asking([11]), after)
    await until(lambda: before.ended and bad.ended and after.ended)
    assert isinstance(bad.error, InvalidRequest)
    assert (bad.error.param, bad.error.reason) == ("prompt_token_ids", "TOKEN_ID_OUT_OF_VOCABULARY")
    assert (len(before.token_ids), after.token_ids) == (51, [11, END])
    assert before.error is after.error is None


async def test_a_full_engine_refuses(link: EngineLink, engine: EngineTier) -> None:
    """Beyond the engine's places a stream fails as overloaded, with the time to wait."""
    sinks = [Sink() for _ in range(9)]
    for sink in sinks:
        link.start(asking([10, 11], sampling_params=endless()), sink)
    await until(lambda: sinks[-1].ended)
    assert isinstance(sinks[-1].error, Unavailable)
    assert (sinks[-1].error.reason, sinks[-1].error.retry_after) == (Overloaded.default_reason, 1.0)
    assert engine.admission.active == 8


async def test_a_request_too_large_for_a_message_is_refused_alone(link: EngineLink) -> None:
    """gRPC would end the link over it, and with it all streams: it is refused before it is sent."""
    other = Sink()
    link.start(asking([10, 11], sampling_params=endless()), other)
    await until(lambda: bool(other.deltas))
    with pytest.raises(TooLarge, match=f"at most {MESSAGE_LIMIT_BYTES} are allowed"):
        link.start(asking([1], cache_salt="x" * MESSAGE_LIMIT_BYTES), Sink())
    seen = len(other.deltas)
    await until(lambda: len(other.deltas) > seen)
    assert link.connected and not other.ended


async def test_a_sink_that_raises_fails_alone(link: EngineLink, engine: EngineTier) -> None:
    """Its stream is cancelled and fails as an internal error, logged with the request's id; others go on."""
    faulty, other = Sink(fault=RuntimeError("a fault")), Sink()
    with structlog.testing.capture_logs() as lines:
        link.start(asking([10, 11], request_id="r-7", sampling_params=endless()), faulty)
        link.start(asking([20, 21], sampling_params=endless()), other)
        await until(lambda: faulty.ended and len(other.deltas) > 3)
    assert isinstance(faulty.error, InternalError)
    (line,) = [line for line in lines if line["log_level"] == "error"]
    assert (line["event"], line["request_id"], line["exc_info"]) == ("stream failed", "r-7", True)
    await until(lambda: engine.admission.active == 1, 1)
    assert not other.ended


async def test_a_dead_engine_fails_its_streams_and_serves_again(link: EngineLink, engine: EngineTier) -> None:
    """When the engine's library dies, all streams fail as unavailable over the standing link; later ones are
    served."""
    sinks = [Sink() for _ in range(3)]
    for sink in sinks:
        link.start(asking([10, 11], sampling_params=endless()), sink)
    await until(lambda: all(sink.deltas for sink in sinks))
    engine.loader.engine.die()
    await until(lambda: all(sink.ended for sink in sinks), 1)
    assert {sink.error.reason for sink in sinks if sink.error} == {"ENGINE_FAILED"}
    assert link.connected
    await until(lambda: engine.model.ready)
    again = Sink()
    link.start(asking([10]), again)
    await until(lambda: again.ended)
    assert again.token_ids == [10, END]


async def test_a_lost_engine_fails_its_streams_and_is_found_again(smollm2: Path) -> None:
    """When the engine's process goes, all live streams fail as unavailable and ended ones hear nothing; starts are
    refused meanwhile, and the link is opened again when the engine is back."""
    async with running_engine(smollm2) as first:
        port = first.port
        lost = running_link(port)
        link = await lost.__aenter__()
        done = Sink()
        link.start(asking([10]), done)
        await until(lambda: done.ended)
        sinks = [Sink() for _ in range(3)]
        cancels = [link.start(asking([10, 11], sampling_params=endless()), sink) for sink in sinks]
        await until(lambda: all(sink.deltas for sink in sinks))
    await until(lambda: all(sink.ended for sink in sinks), 1)
    assert all(isinstance(sink.error, Unavailable) for sink in sinks)
    assert done.error is None
    assert not link.connected
    with pytest.raises(Unavailable, match=f"no connection to 127.0.0.1:{port}"):
        link.start(asking([10]), Sink())
    for cancel in cancels:
        cancel()
    async with running_engine(smollm2, port=port):
        await until(lambda: link.connected, 10)
        again = Sink()
        link.start(asking([10]), again)
        await until(lambda: again.ended)
        assert again.token_ids == [10, END]
        await lost.__aexit__(None, None, None)
