"""Whole responses over ASGI."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Send

from services.chassis.errors import ServiceError
from services.frontend.errors import error_headers, error_object, http_of

Headers = Sequence[tuple[bytes, bytes]]

JSON = b"application/json"


async def send_body(
    send: Send, body: bytes, *, content_type: bytes = JSON, status: int = 200, headers: Headers = ()
) -> None:
    """Send a response with a whole body."""
    all_headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})


async def send_error(send: Send, error: ServiceError) -> None:
    """Send an error as its status and OpenAI's error object."""
    await send_body(send, error_object(error), status=http_of(error).status, headers=error_headers(error))
