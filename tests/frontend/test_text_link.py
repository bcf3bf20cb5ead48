"""The link: frames taken apart in order, for each generation by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.chassis.channel import open_channel
from services.chassis.errors import InternalError, ServiceError, Unavailable
from services.chassis.grpc_server import grpc_server
from services.frontend.sink import Detail, Finished, Started, Usage
from services.frontend.text_link import TextLink
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.fakes.scripted_text_service import SERVICE, ScriptedTextService, finished, frame_of, started
from tests.frontend.conftest import until


class RecordingSink:
    """Keeps all events in order; `takes` is what it answers to deltas."""

    def __init__(self, takes: bool = True) -> None:
        self.events: list[Any] = []
        self.takes = takes

    def started(self, started: Started) -> None:
        self.events.append(started)

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        self.events.append((index, list(token_ids), text, detail))
        return self.takes

    def finished(self, finished: Finished) -> None:
        self.events.append(finished)

    def failed(self, error: Exception) -> None:
        self.events.append(error)


class FrameService(ScriptedTextService):
    """A text service whose link sends the frames that a test puts, and keeps the commands that came."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[text_pb2.GenerateManyRequest] = []
        self.frames: asyncio.Queue[text_pb2.GenerateManyResponse] = asyncio.Queue()

    async def GenerateMany(  # type: ignore[override]
        self, request_iterator: AsyncIterator[text_pb2.GenerateManyRequest], context: Any
    ) -> None:
        await context.send_initial_metadata(())

        async def write() -> None:
            while True:
                await context.write(await self.frames.get())

        writing = asyncio.create_task(write())
        try:
            async for command in request_iterator:
                self.commands += command.batch or [command]
        finally:
            writing.cancel()


@asynccontextmanager
async def linked() -> AsyncGenerator[tuple[FrameService, TextLink], None]:
    """A link that stands, and the service at its other end."""
    service = FrameService()

    def register(server: Any) -> None:
        text_pb2_grpc.add_TextServiceServicer_to_server(service, server)

    async with grpc_server("127.0.0.1", 0, [SERVICE], register) as (port, _):
        address = f"127.0.0.1:{port}"
        async with open_channel(address) as channel:
            link = TextLink(address, channel)
            running = asyncio.create_task(link.run())
            await until(lambda: link.connected)
            try:
                yield service, link
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


def request(n: int = 1) -> text_pb2.GenerateRequest:
    """A request for n choices."""
    return text_pb2.GenerateRequest(request_id="r", model="scripted", n=n)


async def test_a_frame_is_taken_in_its_fixed_order() -> None:
    """Of one frame: starts, then entries with their details, then ends, whatever the order of the events."""
    async with linked() as (service, link):
        one, other = RecordingSink(), RecordingSink()
        first = link.start(request(2), one).stream_id
        second = link.start(request(), other).stream_id
        frame = text_pb2.GenerateManyResponse(
            stream_ids=[first, second, first, first],
            indices=[0, 0, 1, 0],
            token_counts=[2, 1, 0, 3],
            token_ids=[1, 2, 3, 4, 5, 6],
            texts=["a", "b", "", "c"],
        )
        frame.events.add(stream_id=first, finished=finished(5, 0))
        frame.events.add(stream_id=first, detail=text_pb2.EntryDetail(entry=2, reasoning="why"))
        frame.events.add(stream_id=second, finished=finished(1))
        frame.events.add(stream_id=second, started=started(request()))
        frame.events.add(stream_id=first, started=started(request()))
        frame.events.add(stream_id=first, finished=finished(0, 1))
        await service.frames.put(frame)
        await until(lambda: link.live == 0)
        begin, usage = Started(3, 1, "scripted"), Usage(3, 5, 1)
        assert one.events == [
            begin,
            (0, [1, 2], "a", None),
            (1, [], "", Detail("why")),
            (0, [4, 5, 6], "c", None),
            Finished(0, "stop", None, usage),
            Finished(1, "stop", None, Usage(3, 0, 1)),
        ]
        assert other.events == [begin, (0, [3], "b", None), Finished(0, "stop", None, Usage(3, 1, 1))]


async def test_cancel_is_sent_once_and_silences_the_sink() -> None:
    """After cancel the service is told, once, and frames under way reach nobody."""
    async with linked() as (service, link):
        sink = RecordingSink()
        generation = link.start(request(), sink)
        generation.cancel()
        generation.cancel()
        await service.frames.put(frame_of(generation.stream_id, started(request()), text_pb2.Delta(text="late")))
        after = link.start(request(), sink)
        await service.frames.put(frame_of(after.stream_id, started(request())))
        await until(lambda: len(sink.events) == 1)
        assert sink.events == [Started(3, 1, "scripted")]
        assert [command.WhichOneof("command") for command in service.commands] == ["start", "cancel", "start"]
        assert service.commands[1].cancel.stream_id == generation.stream_id


async def test_ids_are_never_used_again() -> None:
    """Each generation of a link has a number of its own."""
    async with linked() as (_, link):
        generations = [link.start(request(), RecordingSink()) for _ in range(3)]
        generations[0].cancel()
        generations.append(link.start(request(), RecordingSink()))
        assert len({generation.stream_id for generation in generations}) == 4


BEGIN = started(request())


@pytest.mark.parametrize(
    "events",
    [
        [text_pb2.Delta(text="a")],
        [finished(0)],
        [BEGIN, text_pb2.Delta(index=1, text="a")],
        [BEGIN, finished(0, 1)],
        [BEGIN, text_pb2.Finished(reason=sampling_pb2.FINISH_REASON_UNSPECIFIED)],
        [BEGIN, BEGIN],
    ],
    ids=[
        "delta before start",
        "end before start",
        "unknown choice",
        "end of unknown choice",
        "no reason",
        "two starts",
    ],
)
async def test_broken_order_fails_one_generation(events: Sequence[Any]) -> None:
    """What the protocol rules out ends its own generation with an error, once, and no other."""
    async with linked() as (service, link):
        broken, sound = RecordingSink(), RecordingSink()
        first, second = link.start(request(), broken), link.start(request(), sound)
        await service.frames.put(frame_of(first.stream_id, *events))
        await service.frames.put(frame_of(second.stream_id, started(request()), text_pb2.Delta(text="a"), finished(1)))
        await until(lambda: link.live == 0)
        assert isinstance(broken.events[-1], InternalError)
        assert sum(isinstance(event, ServiceError) for event in broken.events) == 1
        assert isinstance(sound.events[-1], Finished)
        await until(lambda: len(service.commands) == 3)
        assert service.commands[2].cancel.stream_id == first.stream_id


async def test_a_sink_that_takes_no_more_ends_its_generation() -> None:
    """A reader that is too slow fails and its generation is cancelled at the service."""
    async with linked() as (service, link):
        sink = RecordingSink(takes=False)
        generation = link.start(request(), sink)
        await service.frames.put(frame_of(generation.stream_id, started(request()), text_pb2.Delta(text="a")))
        await until(lambda: len(service.commands) == 2)
        assert service.commands[1].cancel.stream_id == generation.stream_id
        assert isinstance(sink.events[-1], Unavailable)
        assert sink.events[-1].reason == "SLOW_READER"
        assert link.live == 0


async def test_the_end_of_the_link_fails_what_runs() -> None:
    """When this side ends the link, no generation is left without an end."""
    sink = RecordingSink()
    async with linked() as (_, link):
        link.start(request(), sink)
    assert [type(event) for event in sink.events] == [Unavailable]


async def test_a_link_that_is_down_refuses() -> None:
    """Without a connection nothing is started."""
    async with open_channel("127.0.0.1:1") as channel:
        link = TextLink("127.0.0.1:1", channel)
        with pytest.raises(Unavailable):
            link.start(request(), RecordingSink())
        assert link.live == 0
