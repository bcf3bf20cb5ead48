"""The link to the engine: all streams that this process has there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import grpc.aio
import structlog

from services.chassis.changes import Changes
from services.chassis.channel import MESSAGE_LIMIT_BYTES
from services.chassis.errors import InternalError, ServiceError, TooLarge
from services.chassis.link_client import LinkClient
from services.chassis.status import error_of
from services.tokenizer import wire
from services.tokenizer.events import EngineSink
from services.tokenizer.logprobs_wire import frame_logprobs, logprobs_of
from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2

log = structlog.get_logger(__name__)


class _Stream(NamedTuple):
    sink: EngineSink
    request_id: str


class EngineLink:
    """Starts streams at one engine and hands each frame to their sinks.

    Args:
        address: of the engine, for logs and error texts.
        channel: an open channel to it.
        changes: is told when the link comes up and when it is lost.
    """

    def __init__(self, address: str, channel: grpc.aio.Channel, changes: Changes) -> None:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        self._link: LinkClient[engine_pb2.GenerateManyRequest, engine_pb2.GenerateManyResponse] = LinkClient(
            address, stub.GenerateMany, self._on_frame, self._fail_all, _batch, changes
        )
        self._streams: dict[int, _Stream] = {}
        self._stream_ids = itertools.count(1)

    @property
    def connected(self) -> bool:
        """Whether streams can be started."""
        return self._link.connected

    async def run(self) -> None:
        """Keep the link up until cancelled."""
        await self._link.run()

    def start(self, request: engine_pb2.GenerateRequest, sink: EngineSink) -> Callable[[], None]:
        """Begin a stream of one choice.

        Returns: what cancels it; calling that for a stream that is over does nothing.

        Raises:
            Unavailable: the link is down.
            TooLarge: the request is larger than a message may be.
        """
        stream_id = next(self._stream_ids)
        start = engine_pb2.StartGeneration(stream_id=stream_id, request=request)
        command = engine_pb2.GenerateManyRequest(start=start)
        # gRPC ends the whole call over such a message, and all other streams with it.
        if (size := command.ByteSize()) > MESSAGE_LIMIT_BYTES:
            raise TooLarge(f"the request takes {size} bytes at the engine; at most {MESSAGE_LIMIT_BYTES} are allowed")
        self._link.send(command, size)
        self._streams[stream_id] = _Stream(sink, request.request_id)
        return lambda: self._cancel(stream_id)

    def _cancel(self, stream_id: int) -> None:
        if self._streams.pop(stream_id, None) is not None and self._link.connected:
            cancel = engine_pb2.CancelGeneration(stream_id=stream_id)
            command = engine_pb2.GenerateManyRequest(cancel=cancel)
            self._link.send(command, command.ByteSize())

    def _fail_all(self, error: ServiceError) -> None:
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.sink.failed(error)

    def _on_frame(self, frame: engine_pb2.GenerateManyResponse) -> None:
        # In the order that the proto gives: starts, entries, ends.
        stopped: set[int] = set()
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "started":
                self._apply(event.stream_id, _start, event.started)
            elif kind == "finished" and event.finished.reason == sampling_pb2.FINISH_REASON_STOP:
                stopped.add(event.stream_id)
        self._take_entries(frame, stopped)
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "finished":
                self._apply(event.stream_id, _finish, event.finished)
                self._streams.pop(event.stream_id, None)
            elif kind == "failed" and (stream := self._streams.pop(event.stream_id, None)):
                stream.sink.failed(error_of(event.failed))

    def _take_entries(self, frame: engine_pb2.GenerateManyResponse, stopped: set[int]) -> None:
        logprobs = frame_logprobs(frame)
        last_entries = {stream_id: entry for entry, stream_id in enumerate(frame.stream_ids)} if stopped else {}
        token_ids = list(frame.token_ids)
        streams = self._streams
        taken = 0
        for entry, (stream_id, count) in enumerate(zip(frame.stream_ids, frame.token_counts, strict=True)):
            piece = token_ids[taken : taken + count]
            taken += count
            # What was cancelled here may still have output under way.
            if (stream := streams.get(stream_id)) is None:
                continue
            ends_with_stop = stream_id in stopped and last_entries[stream_id] == entry
            try:
                stream.sink.delta(piece, ends_with_stop, logprobs.get(entry))
            except Exception:
                log.exception("stream failed", request_id=stream.request_id)
                self._fail(stream_id, stream)

    def _apply(self, stream_id: int, give: Callable[..., None], *arguments: object) -> None:
        stream = self._streams.get(stream_id)
        # What was cancelled here may still have output under way.
        if stream is None:
            return
        try:
            give(stream.sink, *arguments)
        except Exception:
            log.exception("stream failed", request_id=stream.request_id)
            self._fail(stream_id, stream)

    def _fail(self, stream_id: int, stream: _Stream) -> None:
        # One stream that goes wrong must not take the others of the link along.
        self._cancel(stream_id)
        stream.sink.failed(InternalError())


def _batch(commands: Sequence[engine_pb2.GenerateManyRequest]) -> engine_pb2.GenerateManyRequest:
    return engine_pb2.GenerateManyRequest(batch=commands)


def _start(sink: EngineSink, started: engine_pb2.Started) -> None:
    prompt_logprobs = logprobs_of(started.prompt_logprobs) if started.HasField("prompt_logprobs") else None
    sink.started(started.prompt_tokens, started.cached_tokens, prompt_logprobs)


def _finish(sink: EngineSink, finished: engine_pb2.Finished) -> None:
    sink.finished(wire.finish_of(finished))
