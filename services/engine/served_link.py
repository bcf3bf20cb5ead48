"""The link as the engine serves it: commands in, one frame a step out."""

from __future__ import annotations

from services.chassis.errors import InvalidRequest, ServiceError
from services.chassis.link_server import Outbox
from services.chassis.live_streams import LiveStreams
from services.engine import wire
from services.engine.generation import Generation, Usage
from services.engine.models import Models
from services.engine.port import Finish, Logprobs, Prefilled
from streamomni.engine.v1 import engine_pb2


class EngineOutbox(Outbox[engine_pb2.GenerateManyResponse]):
    """Gathers the frame of all generations of one link."""

    def __init__(self) -> None:
        super().__init__()
        self._logprobs: _LogprobColumns | None = None
        self._forget()

    def add_tokens(self, stream_id: int, index: int, token_ids: list[int], logprobs: Logprobs | None) -> None:
        """Add an entry."""
        if logprobs is not None:
            if self._logprobs is None:
                self._logprobs = _LogprobColumns()
            self._logprobs.add(len(self._stream_ids), logprobs)
        self._stream_ids.append(stream_id)
        self._indices.append(index)
        self._any_index |= index
        self._token_counts.append(len(token_ids))
        self._token_ids += token_ids
        self._added(8 * (len(token_ids) + 3) + (len(logprobs.top_logprobs) * 12 if logprobs else 0))

    def add_event(self, event: engine_pb2.StreamEvent) -> None:
        """Add an event."""
        self._frame.events.append(event)
        self._added(event.ByteSize())

    def _take(self) -> engine_pb2.GenerateManyResponse:
        frame = self._frame
        frame.stream_ids.extend(self._stream_ids)
        if self._any_index:
            frame.indices.extend(self._indices)
        frame.token_counts.extend(self._token_counts)
        frame.token_ids.extend(self._token_ids)
        if self._logprobs is not None:
            self._logprobs.fill(frame.logprobs)
        self._forget()
        return frame

    def _forget(self) -> None:
        self._stream_ids: list[int] = []
        self._indices: list[int] = []
        self._any_index = 0
        self._token_counts: list[int] = []
        self._token_ids: list[int] = []
        self._logprobs = None
        # Holds the events from the first on: putting them in at the end would copy them.
        self._frame = engine_pb2.GenerateManyResponse()


class _LogprobColumns:
    """Log probabilities of a frame's entries. A message for each entry would take several times as long."""

    __slots__ = ("_entries", "_logprobs", "_ranks", "_top_counts", "_top_logprobs", "_top_token_ids")

    def __init__(self) -> None:
        self._entries: list[int] = []
        self._top_counts: list[int] = []
        self._logprobs: list[float] = []
        self._ranks: list[int] = []
        self._top_token_ids: list[int] = []
        self._top_logprobs: list[float] = []

    def add(self, entry: int, logprobs: Logprobs) -> None:
        self._entries.append(entry)
        self._top_counts.append(logprobs.top_count)
        self._logprobs += logprobs.logprobs
        self._ranks += logprobs.ranks
        self._top_token_ids += logprobs.top_token_ids
        self._top_logprobs += logprobs.top_logprobs

    def fill(self, message: engine_pb2.FrameLogprobs) -> None:
        message.entries.extend(self._entries)
        message.top_counts.extend(self._top_counts)
        message.logprobs.extend(self._logprobs)
        message.ranks.extend(self._ranks)
        message.top_token_ids.extend(self._top_token_ids)
        message.top_logprobs.extend(self._top_logprobs)


class ServedLink:
    """The generations that one link started."""

    def __init__(self, models: Models, outbox: EngineOutbox) -> None:
        self._models = models
        self._outbox = outbox
        self._streams = LiveStreams[Generation](
            lambda stream_id, error: outbox.add_event(wire.failed(stream_id, error))
        )

    def execute(self, command: engine_pb2.GenerateManyRequest) -> None:
        """Carry out one command, or those of a batch; a failure becomes an event of its stream.

        Raises:
            InvalidRequest: it is no known command; the link cannot go on.
        """
        if command.batch:
            for member in command.batch:
                self.execute(member)
        elif command.HasField("start"):
            stream_id, request = command.start.stream_id, command.start.request
            self._streams.start(stream_id, request.request_id, lambda: self._begin(stream_id, request))
        elif command.HasField("cancel"):
            self._streams.cancel(command.cancel.stream_id)
        else:
            raise InvalidRequest("a command holds neither start nor cancel; send one of them", param="command")

    def cancel_all(self) -> None:
        """End all that the link started: its client is gone."""
        self._streams.cancel_all()

    def _begin(self, stream_id: int, request: engine_pb2.GenerateRequest) -> Generation:
        model = self._models.find(request.model)
        spec = wire.generation_spec(request)
        return model.start(spec, _LinkSink(stream_id, model.name, spec.n, self._outbox, self._streams))


class _LinkSink:
    """Writes one generation's events to its link."""

    __slots__ = ("_model", "_outbox", "_stream_id", "_streams", "_unfinished")

    def __init__(
        self, stream_id: int, model: str, choices: int, outbox: EngineOutbox, streams: LiveStreams[Generation]
    ) -> None:
        self._stream_id = stream_id
        self._model = model
        self._unfinished = choices
        self._outbox = outbox
        self._streams = streams

    def started(self, prompt_tokens: int, prefilled: Prefilled) -> None:
        event = wire.started(prompt_tokens, prefilled, self._model)
        self._outbox.add_event(engine_pb2.StreamEvent(stream_id=self._stream_id, started=event))

    def delta(self, index: int, token_ids: list[int], logprobs: Logprobs | None) -> None:
        self._outbox.add_tokens(self._stream_id, index, token_ids, logprobs)

    def finished(self, index: int, finish: Finish, usage: Usage) -> None:
        event = wire.finished(index, finish, usage)
        self._outbox.add_event(engine_pb2.StreamEvent(stream_id=self._stream_id, finished=event))
        self._unfinished -= 1
        if self._unfinished == 0:
            self._streams.forget(self._stream_id)

    def failed(self, error: ServiceError) -> None:
        self._outbox.add_event(wire.failed(self._stream_id, error))
        self._streams.forget(self._stream_id)
