"""The link to the engine: against the real engine tier, and against a peer that sends what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import structlog

from services.chassis.channel import MESSAGE_LIMIT_BYTES, open_channel
from services.chassis.errors import InternalError, InvalidRequest, Overloaded, ServiceError, TooLarge, Unavailable
from services.chassis.grpc_server import grpc_server
from services.chassis.status import status_of
from services.tokenizer.engine_link import EngineLink
from services.tokenizer.events import Finish, FinishReason, Usage
from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from tests.tokenizer.engine_fixtures import END, ENGINE_SERVICE, EngineTier, endless, running_engine, sampling, until


@dataclass
class Sink:
    """An engine sink that keeps all it gets. A `fault` is raised at the first delta."""

    starts: list[tuple[int, int]] = field(default_factory=list)
    deltas: list[tuple[list[int], bool]] = field(default_factory=list)
    finish: Finish | None = None
    error: ServiceError | None = None
    fault: Exception | None = None

    def started(self, prompt_tokens: int, cached_tokens: int) -> None:
        """Keep it."""
        self.starts.append((prompt_tokens, cached_tokens))

    def delta(self, token_ids: list[int], ends_with_stop: bool) -> None:
        """Keep it, or fail."""
        if self.fault is not None:
            raise self.fault
        self.deltas.append((token_ids, ends_with_stop))

    def finished(self, finish: Finish) -> None:
        """Keep it."""
        assert self.error is None and self.finish is None
        self.finish = finish

    def failed(self, error: ServiceError) -> None:
        """Keep it."""
        assert self.error is None and self.finish is None
        self.error = error

    @property
    def token_ids(self) -> list[int]:
        """All ids."""
        return [token_id for token_ids, _ in self.deltas for token_id in token_ids]

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self.finish is not None or self.error is not None


def asking(ids: list[int], **fields: Any) -> engine_pb2.GenerateRequest:
    """A request whose prompt the engine says back."""
    return engine_pb2.GenerateRequest(prompt_token_ids=ids, **fields)


@asynccontextmanager
async def running_link(port: int) -> AsyncGenerator[EngineLink, None]:
    """A link to the engine at this port that stands."""
    address = f"127.0.0.1:{port}"
    async with open_channel(address) as channel:
        link = EngineLink(address, channel)
        running = asyncio.create_task(link.run())
        try:
            await until(lambda: link.connected)
            yield link
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


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
    """When the engine's process goes, all streams fail as unavailable, starts are refused meanwhile, and the link is
    opened again when it is back."""
    async with running_engine(smollm2) as first:
        port = first.port
        lost = running_link(port)
        link = await lost.__aenter__()
        sinks = [Sink() for _ in range(3)]
        cancels = [link.start(asking([10, 11], sampling_params=endless()), sink) for sink in sinks]
        await until(lambda: all(sink.deltas for sink in sinks))
    await until(lambda: all(sink.ended for sink in sinks), 1)
    assert all(isinstance(sink.error, Unavailable) for sink in sinks)
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


class Peer(engine_pb2_grpc.EngineServiceServicer):
    """An engine that answers the first command with the frames of a test."""

    def __init__(self, *frames: engine_pb2.GenerateManyResponse) -> None:
        self.frames = frames
        self.commands: list[engine_pb2.GenerateManyRequest] = []

    async def GenerateMany(
        self, request_iterator: AsyncIterator[engine_pb2.GenerateManyRequest], context: Any
    ) -> AsyncGenerator[engine_pb2.GenerateManyResponse, None]:
        """Send the frames, and go on taking commands."""
        await context.send_initial_metadata(())
        async for command in request_iterator:
            self.commands.append(command)
            if command.HasField("start") and command.start.stream_id == 2:
                for frame in self.frames:
                    yield frame

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[EngineLink, None]:
        """A link to this peer."""

        def register(server: grpc.aio.Server) -> None:
            engine_pb2_grpc.add_EngineServiceServicer_to_server(self, server)

        async with grpc_server("127.0.0.1", 0, [ENGINE_SERVICE], register) as (port, _), running_link(port) as link:
            yield link


def event(stream_id: int, **kind: Any) -> engine_pb2.StreamEvent:
    """An event of a stream."""
    return engine_pb2.StreamEvent(stream_id=stream_id, **kind)


async def streams_of(peer: Peer, until_holds: Callable[[Sink, Sink], bool]) -> tuple[Sink, Sink]:
    """Two streams at a peer, after what a test waits for."""
    first, second = Sink(), Sink()
    async with peer.serving() as link:
        link.start(asking([1], request_id="one"), first)
        link.start(asking([2], request_id="two"), second)
        await until(lambda: until_holds(first, second))
    return first, second


async def test_a_frames_parts_are_taken_in_the_protos_order() -> None:
    """Starts first, then the entries, several of one stream in order, then ends, wherever they stand in the frame;
    only the last entry of a stopped stream holds the token that stopped it; unknown streams are passed over."""
    stopped = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_STOP, stop_token_id=7)
    cut = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_LENGTH)
    frame = engine_pb2.GenerateManyResponse(
        stream_ids=[1, 2, 9, 1, 2],
        token_counts=[2, 1, 2, 1, 0],
        token_ids=[5, 6, 50, 98, 99, 7],
        events=[
            event(1, finished=stopped),
            event(9, started=engine_pb2.Started()),
            event(1, started=engine_pb2.Started(prompt_tokens=3, cached_tokens=1)),
            event(2, finished=cut),
            event(9, finished=stopped),
            event(9, failed=status_of(InternalError())),
        ],
    )
    first, second = await streams_of(Peer(frame), lambda one, two: one.ended and two.ended)
    assert first.starts == [(3, 1)]
    assert first.deltas == [([5, 6], False), ([7], True)]
    assert first.finish is not None and first.finish.matched_stop == 7
    assert second.deltas == [([50], False), ([], False)]
    assert second.finish is not None and second.finish.reason is FinishReason.LENGTH


async def test_an_end_of_an_unknown_kind_fails_its_stream_alone() -> None:
    """An engine that ends a stream for a reason that this tier does not know leaves the link and other streams up."""
    odd = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_CONTENT_FILTER)
    cut = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_LENGTH)
    frames = [engine_pb2.GenerateManyResponse(events=[event(1, finished=odd), event(2, finished=cut)])]
    with structlog.testing.capture_logs() as lines:
        first, second = await streams_of(Peer(*frames), lambda one, two: one.ended and two.ended)
    assert isinstance(first.error, InternalError)
    assert second.finish is not None
    assert [line["request_id"] for line in lines if line["log_level"] == "error"] == ["one"]


async def test_nothing_follows_a_failure() -> None:
    """What a peer sends for a stream that has failed is dropped."""
    failed = engine_pb2.GenerateManyResponse(events=[event(1, failed=status_of(Unavailable("gone")))])
    late = engine_pb2.GenerateManyResponse(
        stream_ids=[1, 2],
        token_counts=[1, 1],
        token_ids=[5, 6],
        events=[event(1, finished=engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_LENGTH))],
    )
    first, second = await streams_of(Peer(failed, late), lambda _, two: bool(two.deltas))
    assert (first.deltas, first.finish) == ([], None)
    assert isinstance(first.error, Unavailable) and first.error.message == "gone"
    # The peer ended while the second was under way.
    assert second.token_ids == [6]


async def test_what_is_cancelled_in_the_middle_of_a_frame_gets_no_more_of_it() -> None:
    """A stream that is cancelled by its own delta gets neither the next entry nor the end of the same frame."""
    cut = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_LENGTH)
    frame = engine_pb2.GenerateManyResponse(
        stream_ids=[1, 1],
        token_counts=[1, 1],
        token_ids=[5, 6],
        events=[event(1, finished=cut), event(2, finished=cut)],
    )
    peer = Peer(frame)
    cancels: list[Callable[[], None]] = []

    class Leaving(Sink):
        def delta(self, token_ids: list[int], ends_with_stop: bool) -> None:
            """Keep it and leave."""
            super().delta(token_ids, ends_with_stop)
            cancels[0]()

    leaving, other = Leaving(), Sink()
    async with peer.serving() as link:
        cancels.append(link.start(asking([1]), leaving))
        link.start(asking([2]), other)
        await until(lambda: other.ended and len(peer.commands) == 3)
    assert (leaving.deltas, leaving.ended) == ([([5], False)], False)
    assert peer.commands[2].cancel.stream_id == 1
