"""A request whose stream can be picked up again: the generation belongs to the process, not to the connection."""

from __future__ import annotations

from contextlib import ExitStack

import structlog
from starlette.types import Receive, Send

from services.frontend.direct_body import WriteNow
from services.frontend.generating import Asked, Generating
from services.frontend.request_context import RequestContext
from services.frontend.resume.reading import write_events
from services.frontend.resume.streams import Streams
from services.frontend.running import deliver

log = structlog.get_logger(__name__)


async def answer_resumably(
    generating: Generating,
    streams: Streams,
    asked: Asked,
    context: RequestContext,
    place: ExitStack,
    receive: Receive,
    send: Send,
    write_now: WriteNow,
) -> None:
    """Begin a generation and be the first reader of its stream.

    Until the response begins nobody knows the stream's id, so that leaving before cancels, as it does elsewhere.

    Args:
        place: the generation's place among those under way. It is held until the generation is over.

    Raises:
        ServiceError: it is refused or failed, and nothing was sent.
        ClientGone: the caller left. A stream that had begun goes on.
    """
    stream = streams.open(context.owner)
    sink = generating.stream_sink(asked, stream)

    def conclude() -> None:
        held.close()
        generating.account(context, sink.tally)
        log.info(
            "resumable stream ended",
            request_id=context.request_id,
            stream_id=stream.id,
            events=stream.log.last,
            finish_reason=",".join(sorted(set(context.finish_reasons))) or None,
            error=None if stream.error is None else stream.error.reason,
        )

    try:
        with generating.metrics.active_streams.track_inprogress(), stream.reading(0, write_now) as reader:
            running = await generating.begin(asked, sink, context)
            held = place.pop_all()
            stream.run(running, conclude, generating.timing.request_timeout)
            await deliver(write_events(send, stream, reader, context, generating.timing), receive, reader.failed)
    finally:
        if context.status is None:
            stream.give_up()
