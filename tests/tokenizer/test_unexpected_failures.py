"""A fault of our own in the midst of a stream, brought about by an engine that breaks its promise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import structlog

from services.chassis.errors import InternalError
from services.engine.servicer import EngineServicer
from streamomni.engine.v1 import engine_pb2, sampling_pb2
from tests.tokenizer.engine_fixtures import asking, running_engine, running_text, until


class OddEnd(EngineServicer):
    """An engine whose streams begin well and end for a reason that no tokenizer tier knows."""

    async def GenerateMany(  # type: ignore[override]  # writes its frames itself, which grpc.aio allows
        self, request_iterator: AsyncIterator[engine_pb2.GenerateManyRequest], context: Any
    ) -> None:
        await context.send_initial_metadata(())
        async for command in request_iterator:
            if not command.HasField("start"):
                continue
            stream_id, ids = command.start.stream_id, command.start.request.prompt_token_ids
            started = engine_pb2.StreamEvent(stream_id=stream_id, started=engine_pb2.Started(prompt_tokens=len(ids)))
            frame = engine_pb2.GenerateManyResponse(
                stream_ids=[stream_id], token_counts=[len(ids)], token_ids=ids, events=[started]
            )
            await context.write(frame)
            odd = engine_pb2.Finished(reason=sampling_pb2.FINISH_REASON_CONTENT_FILTER)
            event = engine_pb2.StreamEvent(stream_id=stream_id, finished=odd)
            await context.write(engine_pb2.GenerateManyResponse(events=[event]))


async def test_a_fault_within_a_stream_is_internal_with_a_fixed_text(smollm2: Path) -> None:
    """What came before is told, then the call ends as INTERNAL with the fixed text and without a finish; the log has
    one traceback, under the request's id, and no place is lost."""
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        async with running_engine(smollm2, servicer=OddEnd) as engine, running_text(engine) as tier:
            answer = await tier.generate(asking(tier.encode("one two"), request_id="r-3"))
            assert answer.text() == "one two"
            assert type(answer.error) is InternalError
            assert answer.error.message == InternalError().message
            assert answer.finishes == {}
            await until(lambda: tier.admission.active == 0, 1)
    assert [line["request_id"] for line in lines if line.get("exc_info")] == ["r-3"]
