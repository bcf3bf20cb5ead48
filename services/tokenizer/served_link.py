"""The link as this tier serves it: commands in, one frame a step out."""

from __future__ import annotations

import asyncio

from services.chassis.errors import InvalidRequest, ServiceError
from services.chassis.link_server import Outbox
from services.chassis.live_streams import LiveStreams
from services.tokenizer import findings_wire, logprobs_wire, tools_wire, wire
from services.tokenizer.events import Finish, Parsed, PromptDetail
from services.tokenizer.generation import TextGeneration, TextGenerator
from services.tokenizer.logprobs import TextLogprobs
from streamomni.engine.v1 import engine_pb2
from streamomni.text.v1 import text_pb2

Generator = TextGenerator[engine_pb2.GenerateRequest]
Generation = TextGeneration[engine_pb2.GenerateRequest]


class TextOutbox(Outbox[text_pb2.GenerateManyResponse]):
    """Gathers the frame of all generations of one link."""

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    def add_text(
        self,
        stream_id: int,
        index: int,
        token_ids: list[int],
        text: str,
        logprobs: TextLogprobs | None = None,
        parsed: Parsed | None = None,
    ) -> None:
        """Add an entry."""
        if logprobs is not None or parsed is not None:
            event = self._frame.events.add(stream_id=stream_id)
            detail = event.detail
            detail.entry = len(self._stream_ids)
            if logprobs is not None:
                logprobs_wire.fill_text_logprobs(detail.logprobs, logprobs)
            if parsed is not None:
                detail.reasoning = parsed.reasoning
                detail.tool_calls.extend(tools_wire.pieces(parsed))
                detail.filter_matches.extend(findings_wire.filter_matches(parsed.filter_matches))
                detail.format_faults.extend(findings_wire.format_faults(parsed.format_faults))
            self._added(event.ByteSize())
        self._stream_ids.append(stream_id)
        self._indices.append(index)
        self._any_index |= index
        self._token_counts.append(len(token_ids))
        self._token_ids += token_ids
        self._texts.append(text)
        # Characters take up to 4 bytes; the bound is on memory, not on the wire.
        self._added(8 * (len(token_ids) + 3) + 4 * len(text))

    def add_event(self, event: text_pb2.StreamEvent) -> None:
        """Add an event."""
        self._frame.events.append(event)
        self._added(event.ByteSize())

    def _take(self) -> text_pb2.GenerateManyResponse:
        frame = self._frame
        frame.stream_ids.extend(self._stream_ids)
        if self._any_index:
            frame.indices.extend(self._indices)
        frame.token_counts.extend(self._token_counts)
        frame.token_ids.extend(self._token_ids)
        frame.texts.extend(self._texts)
        self._forget()
        return frame

    def _forget(self) -> None:
        self._stream_ids: list[int] = []
        self._indices: list[int] = []
        self._any_index = 0
        self._token_counts: list[int] = []
        self._token_ids: list[int] = []
        self._texts: list[str] = []
        # Holds the events from the first on: putting them in at the end would copy them.
        self._frame = text_pb2.GenerateManyResponse()


class ServedLink:
    """The generations that one link started.

    Args:
        generator: starts them.
        outbox: where their events go.
        group: encodes their prompts; it ends with the link.
    """

    def __init__(self, generator: Generator, outbox: TextOutbox, group: asyncio.TaskGroup) -> None:
        self._generator = generator
        self._outbox = outbox
        self._group = group
        self._streams = LiveStreams[Generation](
            lambda stream_id, error: outbox.add_event(wire.failed(stream_id, error))
        )

    def execute(self, command: text_pb2.GenerateManyRequest) -> None:
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

    def _begin(self, stream_id: int, request: text_pb2.GenerateRequest) -> Generation:
        spec = wire.text_spec(request)
        generation = self._generator.admit(spec, _LinkSink(stream_id, spec.n, self._outbox, self._streams))
        self._group.create_task(generation.run_up())
        return generation


class _LinkSink:
    """Writes one generation's events to its link."""

    __slots__ = ("_outbox", "_stream_id", "_streams", "_unfinished")

    def __init__(
        self,
        stream_id: int,
        choices: int,
        outbox: TextOutbox,
        streams: LiveStreams[Generation],
    ) -> None:
        self._stream_id = stream_id
        self._unfinished = choices
        self._outbox = outbox
        self._streams = streams

    def started(self, model: str, prompt_tokens: int, cached_tokens: int, prompt: PromptDetail | None = None) -> None:
        event = logprobs_wire.started(model, prompt_tokens, cached_tokens, prompt)
        self._outbox.add_event(text_pb2.StreamEvent(stream_id=self._stream_id, started=event))

    def delta(
        self,
        index: int,
        token_ids: list[int],
        text: str,
        logprobs: TextLogprobs | None = None,
        parsed: Parsed | None = None,
    ) -> None:
        self._outbox.add_text(self._stream_id, index, token_ids, text, logprobs, parsed)

    def finished(self, index: int, finish: Finish) -> None:
        event = wire.finished(index, finish)
        self._outbox.add_event(text_pb2.StreamEvent(stream_id=self._stream_id, finished=event))
        self._unfinished -= 1
        if self._unfinished == 0:
            self._streams.forget(self._stream_id)

    def failed(self, error: ServiceError) -> None:
        self._outbox.add_event(wire.failed(self._stream_id, error))
        self._streams.forget(self._stream_id)
