"""The link to one text service: all generations it does for this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import grpc.aio
import structlog

from services.chassis.errors import InternalError, ServiceError, Unavailable
from services.chassis.link_client import LinkClient
from services.chassis.status import error_of
from services.frontend import wire
from services.frontend.sink import Sink
from streamomni.text.v1 import text_pb2, text_pb2_grpc

log = structlog.get_logger(__name__)


class Generation:
    """One generation under way. `cancel` ends it; afterwards its sink is told nothing more."""

    __slots__ = ("_link", "_open", "_sink", "_started", "request_id", "stream_id")

    def __init__(self, link: TextLink, stream_id: int, request: text_pb2.GenerateRequest, sink: Sink) -> None:
        self._link = link
        self._sink = sink
        self._open = set(range(request.n if request.HasField("n") else 1))
        self._started = False
        self.stream_id = stream_id
        self.request_id = request.request_id

    def cancel(self) -> None:
        """End the generation. One that has ended is left alone."""
        self._link.cancel(self)

    def take_started(self, started: text_pb2.Started) -> None:
        """Take the start.

        Raises:
            BrokenPromise: it came before.
        """
        if self._started:
            raise wire.BrokenPromise("started twice")
        self._started = True
        self._sink.started(wire.started_of(started))

    def take_delta(self, index: int, token_ids: list[int], text: str, detail: text_pb2.EntryDetail | None) -> None:
        """Take the next piece of a choice.

        Raises:
            BrokenPromise: the choice has not begun or has ended.
        """
        if not self._started or index not in self._open:
            raise wire.BrokenPromise(f"delta of choice {index}, which is not open")
        if not self._sink.delta(index, token_ids, text, wire.detail_of(detail) if detail else None):
            self.cancel()
            self._sink.failed(
                Unavailable("the answer was not read as fast as it came; read it faster", reason="SLOW_READER")
            )

    def take_finished(self, event: text_pb2.Finished) -> None:
        """Take the end of a choice.

        Raises:
            BrokenPromise: the choice has not begun or has ended, or no reason is given.
        """
        finished = wire.finished_of(event)
        if not self._started or finished.index not in self._open:
            raise wire.BrokenPromise(f"end of choice {finished.index}, which is not open")
        self._open.remove(finished.index)
        if not self._open:
            self._link.forget(self)
        self._sink.finished(finished)

    def take_failed(self, error: ServiceError) -> None:
        """Take the end of the whole."""
        self._link.forget(self)
        self._sink.failed(error)


class TextLink:
    """Starts generations at one text service and hands each frame's entries to their sinks.

    Args:
        address: of the text service, for logs and error texts.
        channel: an open channel to it.
    """

    def __init__(self, address: str, channel: grpc.aio.Channel) -> None:
        stub = text_pb2_grpc.TextServiceStub(channel)
        self._link: LinkClient[text_pb2.GenerateManyRequest, text_pb2.GenerateManyResponse] = LinkClient(
            address, stub.GenerateMany, self._on_frame, self.fail_all, _batch
        )
        self._generations: dict[int, Generation] = {}
        self._stream_ids = itertools.count(1)
        self.address = address

    @property
    def connected(self) -> bool:
        """Whether generations can be started."""
        return self._link.connected

    @property
    def live(self) -> int:
        """Number of generations under way."""
        return len(self._generations)

    async def run(self) -> None:
        """Keep the link up until cancelled; then what is under way fails."""
        try:
            await self._link.run()
        finally:
            self.fail_all(Unavailable("this service has ended its work; try again"))

    def start(self, request: text_pb2.GenerateRequest, sink: Sink) -> Generation:
        """Start a generation whose events go to `sink`.

        Raises:
            Unavailable: the link is down.
        """
        generation = Generation(self, next(self._stream_ids), request, sink)
        start = text_pb2.StartGeneration(stream_id=generation.stream_id, request=request)
        self._send(text_pb2.GenerateManyRequest(start=start))
        self._generations[generation.stream_id] = generation
        return generation

    def forget(self, generation: Generation) -> None:
        """Drop a generation that has ended."""
        self._generations.pop(generation.stream_id, None)

    def cancel(self, generation: Generation) -> None:
        """End a generation at the text service too, if it is under way."""
        if self._generations.pop(generation.stream_id, None) is not None and self._link.connected:
            cancel = text_pb2.CancelGeneration(stream_id=generation.stream_id)
            self._send(text_pb2.GenerateManyRequest(cancel=cancel))

    def fail_all(self, error: ServiceError) -> None:
        """End all generations under way with an error."""
        for generation in list(self._generations.values()):
            self.cancel(generation)
            self._apply(generation, generation.take_failed, error)

    def _send(self, command: text_pb2.GenerateManyRequest) -> None:
        self._link.send(command, command.ByteSize())

    def _on_frame(self, frame: text_pb2.GenerateManyResponse) -> None:
        generations = self._generations
        details: dict[int, text_pb2.EntryDetail] = {}
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "detail":
                details[event.detail.entry] = event.detail
            elif kind == "started" and (generation := generations.get(event.stream_id)):
                self._apply(generation, generation.take_started, event.started)
        token_ids = list(frame.token_ids)
        indices = frame.indices or itertools.repeat(0)
        entries = zip(frame.stream_ids, indices, frame.token_counts, frame.texts, strict=False)
        taken = 0
        for entry, (stream_id, index, count, text) in enumerate(entries):
            # A generation that was cancelled here may still have entries under way.
            if generation := generations.get(stream_id):
                piece = token_ids[taken : taken + count]
                try:
                    generation.take_delta(index, piece, text, details.get(entry))
                except Exception:
                    log.exception("generation failed", request_id=generation.request_id, peer=self.address)
                    self._give_up(generation)
            taken += count
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind == "finished" and (generation := generations.get(event.stream_id)):
                self._apply(generation, generation.take_finished, event.finished)
            elif kind == "failed" and (generation := generations.get(event.stream_id)):
                self._apply(generation, generation.take_failed, error_of(event.failed))

    def _apply(self, generation: Generation, take: Callable[..., None], *args: Any) -> None:
        try:
            take(*args)
        except Exception:
            log.exception("generation failed", request_id=generation.request_id, peer=self.address)
            self._give_up(generation)

    def _give_up(self, generation: Generation) -> None:
        # One generation that goes wrong must not take the others of the link along.
        self.cancel(generation)
        generation.take_failed(InternalError())


def _batch(commands: Sequence[text_pb2.GenerateManyRequest]) -> text_pb2.GenerateManyRequest:
    return text_pb2.GenerateManyRequest(batch=commands)
