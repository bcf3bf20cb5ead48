"""The calling side of a link over real gRPC."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from services.chassis import errors
from services.chassis.status import error_of
from streamomni.engine.v1 import engine_pb2
from tests.engine.engine_service import EngineService, engine_service, generate_request


class Link:
    """The calling side of one link: keeps what comes, by stream."""

    def __init__(self, service: EngineService) -> None:
        self.call: Any = service.stub.GenerateMany()
        self.events: dict[int, list[str]] = defaultdict(list)
        self.tokens: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.logprobs: dict[int, list[float]] = defaultdict(list)
        self.failures: dict[int, errors.ServiceError] = {}
        self.frames = 0

    async def start(self, stream_id: int, **fields: Any) -> None:
        """Begin a generation."""
        request = generate_request(**fields)
        start = engine_pb2.StartGeneration(stream_id=stream_id, request=request)
        await self.call.write(engine_pb2.GenerateManyRequest(start=start))

    async def cancel(self, stream_id: int) -> None:
        """End one."""
        cancel = engine_pb2.CancelGeneration(stream_id=stream_id)
        await self.call.write(engine_pb2.GenerateManyRequest(cancel=cancel))

    async def read(self) -> None:
        """Take frames until cancelled or the end."""
        async for frame in self.call:
            self._take(frame)

    def ended(self, stream_id: int) -> bool:
        """Whether a stream has finished or failed."""
        return bool({"finished", "failed"} & set(self.events[stream_id]))

    def _take(self, frame: engine_pb2.GenerateManyResponse) -> None:
        self.frames += 1
        for event in frame.events:
            if event.HasField("started"):
                self.events[event.stream_id].append("started")
        told = dict(_logprobs(frame))
        begin = 0
        indices = frame.indices or [0] * len(frame.stream_ids)
        entries = zip(frame.stream_ids, indices, frame.token_counts, strict=True)
        for entry, (stream_id, index, count) in enumerate(entries):
            self.logprobs[stream_id] += told.get(entry, [])
            self.tokens[stream_id, index].extend(frame.token_ids[begin : begin + count])
            self.events[stream_id].append("tokens")
            begin += count
        assert begin == len(frame.token_ids)
        for event in frame.events:
            kind = event.WhichOneof("event")
            if kind in ("finished", "failed"):
                self.events[event.stream_id].append(kind)
                if kind == "failed":
                    self.failures[event.stream_id] = error_of(event.failed)


def _logprobs(frame: engine_pb2.GenerateManyResponse) -> Iterator[tuple[int, list[float]]]:
    """Those of each entry's tokens, by the entry's position."""
    columns, begin = frame.logprobs, 0
    for entry in columns.entries:
        end = begin + frame.token_counts[entry]
        yield entry, list(columns.logprobs[begin:end])
        begin = end
    assert begin == len(columns.logprobs) == len(columns.ranks)


@asynccontextmanager
async def linked(path: Path, **fields: Any) -> AsyncGenerator[tuple[EngineService, Link], None]:
    """A service and an open link to it."""
    async with engine_service(path, **fields) as service:
        link = Link(service)
        await link.call.initial_metadata()
        reading = asyncio.create_task(link.read())
        try:
            yield service, link
        finally:
            reading.cancel()
            link.call.cancel()
            await asyncio.gather(reading, return_exceptions=True)
