"""The link to the engine: all streams that this process has there."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import grpc.aio
import structlog

from services.chassis.errors import InternalError, ServiceError
from services.chassis.link_client import LinkClient
from services.chassis.status import error_of
from services.tokenizer import wire
from services.tokenizer.events import EngineSink
from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2

log = structlog.get_logger(__name__)


class EngineLink:
    """Starts streams at one engine and hands each frame to their sinks.

    Args:
        address: of the engine, for logs and error texts.
        channel: an open channel to it.
    """

    def __init__(self, address: str, channel: grpc.aio.Channel) -> None:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        self._link: LinkClient[engine_pb2.GenerateManyRequest, engine_pb2.GenerateManyResponse] = LinkClient(
            address, stub.GenerateMany, self._on_frame, self._fail_all
        )
        self._sinks: dict[int, EngineSink] = {}
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
        """
        stream_id = next(self._stream_ids)
        start = engine_pb2.StartGeneration(stream_id=stream_id, request=request)
        self._link.send(engine_pb2.GenerateManyRequest(start=start))
        self._sinks[stream_id] = sink
        return lambda: self._cancel(stream_id)

    def _cancel(self, stream_id: int) -> None:
        if self._sinks.pop(stream_id, None) is not None and self._link.connected:
            cancel = engine_pb2.CancelGeneration(stream_id=stream_id)
            self._link.send(engine_pb2.GenerateManyRequest(cancel=cancel))

    def _fail_all(self, error: ServiceError) -> None:
        sinks, self._sinks = self._sinks, {}
        for sink in sinks.values():
            sink.failed(error)

    def _on_frame(self, frame: engine_pb2.GenerateManyResponse) -> None:
        # In the order that the proto gives: starts, entries, ends.
        stopped: set[int] = set()
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "started" and (sink := self._sinks.get(event.stream_id)):
                self._apply(event.stream_id, sink.started, event.started.prompt_tokens, event.started.cached_tokens)
            elif kind == "finished" and event.finished.reason == sampling_pb2.FINISH_REASON_STOP:
                stopped.add(event.stream_id)
        self._take_entries(frame, stopped)
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "finished" and (sink := self._sinks.get(event.stream_id)):
                self._apply(event.stream_id, sink.finished, wire.finish_of(event.finished))
                self._sinks.pop(event.stream_id, None)
            elif kind == "failed" and (sink := self._sinks.pop(event.stream_id, None)):
                sink.failed(error_of(event.failed))

    def _take_entries(self, frame: engine_pb2.GenerateManyResponse, stopped: set[int]) -> None:
        last_entries = {stream_id: entry for entry, stream_id in enumerate(frame.stream_ids)} if stopped else {}
        token_ids = list(frame.token_ids)
        taken = 0
        for entry, (stream_id, count) in enumerate(zip(frame.stream_ids, frame.token_counts, strict=True)):
            # What was cancelled here may still have output under way.
            if sink := self._sinks.get(stream_id):
                ends_with_stop = stream_id in stopped and last_entries[stream_id] == entry
                self._apply(stream_id, sink.delta, token_ids[taken : taken + count], ends_with_stop)
            taken += count

    def _apply(self, stream_id: int, take: Callable[..., None], *arguments: object) -> None:
        try:
            take(*arguments)
        except Exception:
            # One stream that goes wrong must not take the others of the link along.
            log.exception("stream failed", stream_id=stream_id)
            sink = self._sinks.get(stream_id)
            self._cancel(stream_id)
            if sink is not None:
                sink.failed(InternalError())
