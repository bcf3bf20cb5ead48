"""A running text service as the contract tests use it; what comes is checked against the rules of `text.proto`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.chassis.channel import open_channel
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.contracts.text_record import Record

SERVICE = "streamomni.text.v1.TextService"
SERVING = health_pb2.HealthCheckResponse.SERVING
# Far above what any step takes, far below the test's own limit.
PATIENCE_SECONDS = 30.0


class LiveLink:
    """An open link that keeps all frames, sorted by generation."""

    def __init__(self, call: grpc.aio.StreamStreamCall[Any, Any]) -> None:
        self.call = call
        self.frames = 0
        self.records: dict[int, Record] = {}
        self.reading = asyncio.create_task(self._read())

    async def start(self, stream_id: int, request: text_pb2.GenerateRequest) -> Record:
        """Begin a generation."""
        record, command = self._starting(stream_id, request)
        await self.call.write(command)
        return record

    async def start_together(
        self, first_id: int, requests: Sequence[text_pb2.GenerateRequest], cancelled: Sequence[int] = ()
    ) -> list[Record]:
        """Begin generations of rising numbers, and end some of them at once, all in one message."""
        started = [self._starting(number, request) for number, request in enumerate(requests, first_id)]
        batch = [command for _, command in started] + [_cancel(stream_id) for stream_id in cancelled]
        await self.call.write(text_pb2.GenerateManyRequest(batch=batch))
        return [record for record, _ in started]

    def _starting(
        self, stream_id: int, request: text_pb2.GenerateRequest
    ) -> tuple[Record, text_pb2.GenerateManyRequest]:
        record = self.records.setdefault(stream_id, Record(request.n if request.HasField("n") else 1))
        start = text_pb2.StartGeneration(stream_id=stream_id, request=request)
        return record, text_pb2.GenerateManyRequest(start=start)

    async def cancel(self, stream_id: int) -> None:
        """End a generation."""
        await self.call.write(_cancel(stream_id))

    async def until(self, holds: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until something holds; fail as soon as the link ends or breaks a rule."""
        async with asyncio.timeout(seconds):
            while not holds():
                if self.reading.done():
                    self.reading.result()
                    raise AssertionError("the link ended")
                await asyncio.sleep(0.005)

    async def end_of(self, *records: Record) -> None:
        """Wait for the end of generations."""
        await self.until(lambda: all(record.over for record in records))

    async def _read(self) -> None:
        async for frame in self.call:
            self._take(frame)
            self.frames += 1

    def _take(self, frame: text_pb2.GenerateManyResponse) -> None:
        """Sort one frame, in the order that the proto gives."""
        entries = len(frame.stream_ids)
        assert entries or frame.events, "an empty frame"
        assert len(frame.indices) in (0, entries)
        assert len(frame.token_counts) == len(frame.texts) == entries
        assert sum(frame.token_counts) == len(frame.token_ids)
        for event in frame.events:
            if event.HasField("started"):
                self.records[event.stream_id].take_started(event.started)
        details = {event.detail.entry: event.detail for event in frame.events if event.HasField("detail")}
        taken = 0
        for entry, (stream_id, count) in enumerate(zip(frame.stream_ids, frame.token_counts, strict=True)):
            index = frame.indices[entry] if frame.indices else 0
            token_ids = frame.token_ids[taken : taken + count]
            self.records[stream_id].take_entry(index, token_ids, frame.texts[entry])
            if entry in details:
                self.records[stream_id].take_detail(details[entry])
            taken += count
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "finished":
                self.records[event.stream_id].take_finished(event.finished)
            elif kind == "failed":
                self.records[event.stream_id].take_failed(event.failed)
            elif kind == "detail":
                assert frame.stream_ids[event.detail.entry] == event.stream_id, "a detail of another's entry"
            else:
                assert kind == "started", "an event of no kind"


class LiveText:
    """A text service under test.

    Args:
        channel: an open channel to it.
        model: name of its only model.
        is_idle: whether nothing of any generation is left behind the service.
    """

    def __init__(self, channel: grpc.aio.Channel, model: str, is_idle: Callable[[], bool]) -> None:
        self.channel = channel
        self.stub = text_pb2_grpc.TextServiceStub(channel)
        self.model = model
        self._is_idle = is_idle

    @asynccontextmanager
    async def link(self) -> AsyncGenerator[LiveLink, None]:
        """A link that stands at once; no rule was broken on it, and within 1 s of its end nothing is left of it."""
        call = self.stub.GenerateMany()
        async with asyncio.timeout(1):
            await call.initial_metadata()
        link = LiveLink(call)
        try:
            yield link
            if link.reading.done() and not link.reading.cancelled():
                link.reading.result()
        finally:
            call.cancel()
            link.reading.cancel()
            await asyncio.gather(link.reading, return_exceptions=True)
        await self.until_idle(1)

    async def until_idle(self, seconds: float) -> None:
        """Wait until nothing of any generation is left."""
        async with asyncio.timeout(seconds):
            while not self._is_idle():  # noqa: ASYNC110 - it is behind a socket
                await asyncio.sleep(0.02)

    async def generate(self, request: text_pb2.GenerateRequest) -> Record:
        """Run one public generation to its end."""
        record = Record(request.n if request.HasField("n") else 1)
        call = self.stub.Generate(request)
        try:
            async for response in call:
                kind = response.WhichOneof("event")
                if kind == "started":
                    record.take_started(response.started)
                elif kind == "delta":
                    delta = response.delta
                    record.take_entry(delta.index, delta.token_ids, delta.text)
                    if delta.reasoning or delta.tool_calls or delta.HasField("logprobs"):
                        record.take_detail(delta)
                else:
                    record.take_finished(response.finished)
        except grpc.aio.AioRpcError as error:
            details = dict(error.trailing_metadata())["grpc-status-details-bin"]
            assert isinstance(details, bytes)
            record.take_failed(Status.FromString(details))
        finally:
            call.cancel()
        assert record.over, "the stream ended with neither a finish nor an error"
        return record

    async def health(self, service: str) -> int:
        """What it says of its health now."""
        # Its types know no methods.
        stub: Any = health_pb2_grpc.HealthStub(self.channel)
        response: health_pb2.HealthCheckResponse = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        return response.status


@asynccontextmanager
async def live_text(address: str, model: str, is_idle: Callable[[], bool]) -> AsyncGenerator[LiveText, None]:
    """A client of the text service at an address, once it is healthy and idle."""
    async with open_channel(address) as channel:
        text = LiveText(channel, model, is_idle)
        async with asyncio.timeout(90):
            await channel.channel_ready()
            while await text.health(SERVICE) != SERVING:  # noqa: ASYNC110 - it is behind a socket
                await asyncio.sleep(0.02)
        await text.until_idle(PATIENCE_SECONDS)
        yield text


def _cancel(stream_id: int) -> text_pb2.GenerateManyRequest:
    return text_pb2.GenerateManyRequest(cancel=text_pb2.CancelGeneration(stream_id=stream_id))
