"""A resumable stream as server-sent events, from where its reader left off."""

from __future__ import annotations

import asyncio

from starlette.types import Send

from services.chassis.errors import ServiceError
from services.frontend.chunks import COMMENT, error_event
from services.frontend.errors import error_object
from services.frontend.request_context import RequestContext
from services.frontend.resume.reader import Reader
from services.frontend.resume.stream import ResumableStream
from services.frontend.streaming import STREAM_HEADERS, Timing

STREAM_ID_HEADER = b"x-stream-id"


async def write_events(
    send: Send, stream: ResumableStream, reader: Reader, context: RequestContext, timing: Timing
) -> None:
    """Send what a reader reads, until the stream's end, with comments while nothing comes.

    Raises:
        ServiceError: the generation failed before it had an event, and nothing was sent.
        ClientGone: the caller left.
    """
    began = False

    async def write(body: bytes) -> None:
        nonlocal began
        if not began:
            headers = [*STREAM_HEADERS, (STREAM_ID_HEADER, stream.id.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            began = True
        await send({"type": "http.response.body", "body": body, "more_body": True})

    try:
        while body := await _next(reader, timing, began):
            if not began and stream.error is not None and stream.log.last == 1:
                raise stream.error
            await write(body)
        if stream.error is not None:
            context.error = stream.error.reason
        await send({"type": "http.response.body", "body": b""})
    except ServiceError as error:
        if not began:
            raise
        context.error = error.reason
        await send({"type": "http.response.body", "body": error_event(error_object(error))})


async def _next(reader: Reader, timing: Timing, began: bool) -> bytes:
    """What comes next, or a comment when nothing did for long enough; nothing at the end."""
    allowed = timing.comment_interval if began else timing.first_byte
    while True:
        quiet_until = reader.last_event_time + allowed
        try:
            async with asyncio.timeout_at(quiet_until):
                return await reader.next()
        except TimeoutError:
            if reader.last_event_time + allowed == quiet_until:
                reader.last_event_time = asyncio.get_running_loop().time()
                return COMMENT
