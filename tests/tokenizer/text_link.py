"""A client of the text link that keeps all frames and sorts them by generation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import grpc.aio

from services.chassis.errors import ServiceError
from services.chassis.status import error_of, error_of_call
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.tokenizer.engine_fixtures import Answer


class TextLink:
    """An open link."""

    def __init__(self, stub: text_pb2_grpc.TextServiceAsyncStub) -> None:
        self.call = stub.GenerateMany()
        self.frames: list[text_pb2.GenerateManyResponse] = []
        self.answers: dict[int, Answer] = {}
        self.error: ServiceError | None = None

    async def start(self, stream_id: int, request: text_pb2.GenerateRequest) -> Answer:
        """Begin a generation."""
        answer = self.answers.setdefault(stream_id, Answer())
        start = text_pb2.StartGeneration(stream_id=stream_id, request=request)
        await self.call.write(text_pb2.GenerateManyRequest(start=start))
        return answer

    async def cancel(self, stream_id: int) -> None:
        """End a generation."""
        cancel = text_pb2.CancelGeneration(stream_id=stream_id)
        await self.call.write(text_pb2.GenerateManyRequest(cancel=cancel))

    async def read(self) -> None:
        """Take frames until the link ends."""
        try:
            async for frame in self.call:
                self.frames.append(frame)
                self.take(frame)
        except grpc.aio.AioRpcError as error:
            self.error = error_of_call(error)

    def take(self, frame: text_pb2.GenerateManyResponse) -> None:
        """Sort one frame, in the order that the proto gives."""
        for event in frame.events:
            if event.HasField("started"):
                self.answers[event.stream_id].take(text_pb2.GenerateResponse(started=event.started))
        indices = frame.indices or [0] * len(frame.stream_ids)
        details = {event.detail.entry: event.detail for event in frame.events if event.HasField("detail")}
        taken = 0
        for entry, (stream_id, index, count, text) in enumerate(
            zip(frame.stream_ids, indices, frame.token_counts, frame.texts, strict=True)
        ):
            delta = text_pb2.Delta(index=index, token_ids=frame.token_ids[taken : taken + count], text=text)
            if entry in details:
                detail = details[entry]
                delta.reasoning = detail.reasoning
                delta.tool_calls.extend(detail.tool_calls)
                delta.filter_matches.extend(detail.filter_matches)
                delta.format_faults.extend(detail.format_faults)
                if detail.HasField("logprobs"):
                    delta.logprobs.CopyFrom(detail.logprobs)
            self.answers[stream_id].take(text_pb2.GenerateResponse(delta=delta))
            taken += count
        assert taken == len(frame.token_ids)
        for event in frame.events:
            if event.HasField("finished"):
                self.answers[event.stream_id].take(text_pb2.GenerateResponse(finished=event.finished))
            elif event.HasField("failed"):
                self.answers[event.stream_id].error = error_of(event.failed)


@asynccontextmanager
async def text_link(stub: text_pb2_grpc.TextServiceAsyncStub) -> AsyncGenerator[TextLink, None]:
    """An open link; leaving the block cancels its call."""
    link = TextLink(stub)
    await link.call.initial_metadata()
    reading = asyncio.create_task(link.read())
    try:
        yield link
    finally:
        link.call.cancel()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
