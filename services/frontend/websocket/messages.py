"""What is said over the WebSocket: JSON objects, one a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from services.chassis.errors import InvalidRequest, ServiceError
from services.frontend.chunks import DONE, content_of
from services.frontend.direct_body import WriteNow
from services.frontend.errors import error_fields
from services.frontend.fields import Fields
from services.frontend.generating import Asked, Generating
from services.frontend.request_context import RequestContext
from services.frontend.sessions.turns import StoredBody

MAX_ID_CHARS = 128
PONG = b'{"type":"pong"}'


@dataclass(frozen=True, slots=True)
class Start:
    """Begins a generation: a valid request, or why it is refused."""

    id: str
    context: RequestContext
    generating: Generating
    asked: Asked | StoredBody | ServiceError


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ends a generation."""

    id: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks for a sign of life."""


Command = Start | Cancel | Ping


def parse_command(message: dict[str, Any], endpoints: Mapping[str, Generating], context: RequestContext) -> Command:
    """Make a command of a message's object.

    Args:
        endpoints: by the names that messages give them.
        context: of the generation that the message may start.

    Raises:
        InvalidRequest: it is no command. What is wrong with a generation's request alone is part of its command.
    """
    fields = Fields(message)
    kind = fields.string("type")
    if kind == "ping":
        return Ping()
    if kind == "cancel":
        return Cancel(_parse_id(fields))
    if kind != "start":
        raise InvalidRequest("type must be one of start, cancel and ping", param="type")
    generation_id, endpoint = _parse_id(fields), fields.string("endpoint")
    generating = endpoints.get(endpoint or "")
    if generating is None:
        raise InvalidRequest(f"endpoint must be one of {' and '.join(endpoints)}", param="endpoint")
    body = message.get("body")
    if not isinstance(body, dict):
        raise InvalidRequest("body must be an object, that of a request over HTTP", param="body")
    return Start(generation_id, context, generating, _ask(generating, body, context))


def _ask(generating: Generating, body: dict[str, Any], context: RequestContext) -> Asked | StoredBody | ServiceError:
    try:
        if body.get("stream") is False:
            raise InvalidRequest("answers over a WebSocket are streams; leave stream out", param="stream")
        return generating.ask(body | {"stream": True}, context)
    except ServiceError as error:
        return error


async def with_history(start: Start) -> Asked:
    """Return a generation's whole request.

    Raises:
        ServiceError: it is refused.
    """
    if isinstance(start.asked, ServiceError):
        raise start.asked
    asked = await start.generating.with_history(start.asked, start.context)
    if asked.request.delivery.resumable:
        raise InvalidRequest(
            "a generation ends with its WebSocket; ask for resumable streams over HTTP",
            param="stream_options.resumable",
        )
    return asked


def _parse_id(fields: Fields) -> str:
    given = fields.string("id", MAX_ID_CHARS)
    if not given:
        raise InvalidRequest("id is required: a name of your choice for the generation", param="id")
    return given


class Envelope:
    """Makes messages of one generation."""

    __slots__ = ("_head", "_id", "_write_now", "done")

    def __init__(self, generation_id: str, write_now: WriteNow) -> None:
        self._id = generation_id
        self._head = orjson.dumps({"type": "event", "id": generation_id}).removesuffix(b"}") + b',"data":'
        self.done = orjson.dumps({"type": "done", "id": generation_id})
        self._write_now = write_now

    def event(self, event: bytes) -> bytes:
        """Return the message of a server-sent event, which holds the same object."""
        return b"%b%b}" % (self._head, content_of(event))

    def write_now(self, event: bytes) -> bool:
        """Write a server-sent event's message at once where that is possible; see `direct_body.WriteNow`.

        The end is left to the generation's task, so that its id is free before its client knows.
        """
        return event is not DONE and self._write_now(self.event(event))

    def started(self, stream_id: str) -> bytes:
        """Return the message that begins a generation, with the id by which it is cancelled from elsewhere."""
        return orjson.dumps({"type": "started", "id": self._id, "stream_id": stream_id})

    def cancelled(self) -> bytes:
        """Return the message that ends a cancelled generation."""
        return orjson.dumps({"type": "cancelled", "id": self._id})

    def error(self, error: ServiceError, request_id: str) -> bytes:
        """Return the message that ends a generation with an error."""
        return error_message(error, request_id, self._id)


def error_message(error: ServiceError, request_id: str, generation_id: str | None = None) -> bytes:
    """Return the message of an error: the end of a generation, or without one, what was wrong with a message."""
    ended = {} if generation_id is None else {"id": generation_id}
    retry = {} if error.retry_after is None else {"retry_after_ms": round(error.retry_after * 1000)}
    return orjson.dumps({"type": "error", **ended, "error": {**error_fields(error), "request_id": request_id, **retry}})
