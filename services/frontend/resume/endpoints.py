"""GET /v1/streams/{stream_id} and POST /v1/streams/{stream_id}/cancel."""

from __future__ import annotations

from dataclasses import dataclass

import orjson
from starlette.datastructures import Headers, QueryParams
from starlette.types import Receive, Scope, Send

from services.chassis.errors import InvalidRequest
from services.frontend.direct_body import write_now_of
from services.frontend.errors import StreamGone
from services.frontend.metrics import FrontendMetrics
from services.frontend.request_context import context_of
from services.frontend.responses import send_body
from services.frontend.resume.reading import write_events
from services.frontend.resume.streams import Streams
from services.frontend.running import deliver
from services.frontend.streaming import Timing

_HEADER, _PARAM = "last-event-id", "last_event_id"
_MAX_DIGITS = 18


@dataclass(frozen=True, slots=True)
class ResumeEndpoint:
    """Sends the events of a stream that a reader does not have yet, then those that come."""

    streams: Streams
    timing: Timing
    metrics: FrontendMetrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            NotFound: there is no such stream.
            StreamGone: events that are asked for are not kept any more.
            InvalidRequest: the number of the last event is none of this stream's.
            ClientGone: the caller left; the stream goes on.
        """
        context = context_of(scope)
        stream = self.streams.find(scope["path_params"]["stream_id"], context.owner)
        after = _last_event_id(scope)
        if after > stream.log.last:
            raise InvalidRequest(f"this stream's newest event has number {stream.log.last}; send that of the last read")
        if after < stream.log.first - 1:
            raise StreamGone(f"this stream's events before number {stream.log.first} are not kept; ask again for it")
        if stream.ended and after == stream.log.last:
            # It tells an EventSource to come back no more.
            # https://html.spec.whatwg.org/multipage/server-sent-events.html#sse-processing-model
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        with self.metrics.active_streams.track_inprogress(), stream.reading(after, write_now_of(scope)) as reader:
            writing = write_events(send, stream, reader, context, self.timing)
            await deliver(writing, receive, reader.failed)


@dataclass(frozen=True, slots=True)
class CancelEndpoint:
    """Ends a stream."""

    streams: Streams

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            NotFound: there is no such stream.
        """
        stream_id = scope["path_params"]["stream_id"]
        cancelled = self.streams.cancel(stream_id, context_of(scope).owner)
        await send_body(send, orjson.dumps({"id": stream_id, "cancelled": cancelled}))


def _last_event_id(scope: Scope) -> int:
    """The number of the last event that the reader has. The header goes before the query: a browser's EventSource opens
    one URL again and again, and its header tells how far it is by now."""
    given = Headers(scope=scope).get(_HEADER, QueryParams(scope["query_string"]).get(_PARAM, ""))
    if given == "":
        return 0
    if not (given.isascii() and given.isdigit() and len(given) <= _MAX_DIGITS):
        raise InvalidRequest(f"{_HEADER} must be the number of an event; send the last id that came", param=_PARAM)
    return int(given)
