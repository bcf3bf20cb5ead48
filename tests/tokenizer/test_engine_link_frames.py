"""How the link to the engine takes frames, from a peer that sends what a test says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import structlog

from services.chassis.errors import InternalError, Unavailable
from services.chassis.grpc_server import grpc_server
from services.chassis.status import status_of
from services.tokenizer.engine_link import EngineLink
from services.tokenizer.events import FinishReason
from services.tokenizer.logprobs import Logprobs
from services.tokenizer.logprobs_wire import frame_logprobs
from streamomni.engine.v1 import engine_pb2, sampling_pb2
from tests.tokenizer.engine_fixtures import ENGINE_SERVICE, until
from tests.tokenizer.engine_sink import Sink, asking, running_link


class Peer:
    """An engine that answers the second start with the frames of a test."""

    def __init__(self, *frames: engine_pb2.GenerateManyResponse) -> None:
        self.frames = frames
        self.commands: list[engine_pb2.GenerateManyRequest] = []

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[EngineLink, None]:
        """A link to this peer."""
        method: Any = grpc.stream_stream_rpc_method_handler(
            self._generate_many,
            request_deserializer=engine_pb2.GenerateManyRequest.FromString,
            response_serializer=engine_pb2.GenerateManyResponse.SerializeToString,
        )

        def register(server: grpc.aio.Server) -> None:
            services = (grpc.method_handlers_generic_handler(ENGINE_SERVICE, {"GenerateMany": method}),)
            server.add_generic_rpc_handlers(services)

        async with grpc_server("127.0.0.1", 0, [ENGINE_SERVICE], register) as (port, _), running_link(port) as link:
            yield link

    async def _generate_many(
        self, request_iterator: AsyncIterator[engine_pb2.GenerateManyRequest], context: Any
    ) -> AsyncGenerator[engine_pb2.GenerateManyResponse, None]:
        await context.send_initial_metadata(())
        async for message in request_iterator:
            for command in message.batch or [message]:
                self.commands.append(command)
                if command.HasField("start") and command.start.stream_id == 2:
                    for frame in self.frames:
                        yield frame


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
        def delta(self, token_ids: list[int], ends_with_stop: bool, logprobs: Logprobs | None = None) -> None:
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


def test_each_entry_of_a_frame_has_its_own_part_of_the_columns() -> None:
    """Entries with any number of tokens and of alternatives are told apart; entries without have none."""
    frame = engine_pb2.GenerateManyResponse(
        stream_ids=[7, 8, 9],
        token_counts=[2, 1, 1],
        token_ids=[1, 2, 3, 4],
        logprobs=engine_pb2.FrameLogprobs(
            entries=[0, 2],
            top_counts=[1, 0],
            logprobs=[-0.5, -1.0, -2.0],
            ranks=[1, 2, 3],
            top_token_ids=[5, 6],
            top_logprobs=[-0.25, -0.75],
        ),
    )
    assert frame_logprobs(frame) == {
        0: Logprobs([-0.5, -1.0], [1, 2], 1, [5, 6], [-0.25, -0.75]),
        2: Logprobs([-2.0], [3], 0, [], []),
    }
    assert frame_logprobs(engine_pb2.GenerateManyResponse(stream_ids=[7], token_counts=[1], token_ids=[1])) == {}
