"""An error response that no application made: to what cannot be handed to one."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from services.chassis.errors import ServiceError
from services.frontend.errors import error_headers, error_object, http_of

log = structlog.get_logger(__name__)


def refusal(error: ServiceError, default_headers: Sequence[tuple[bytes, bytes]], peer: object) -> bytes:
    """Return the response to an error, to the byte, and log it. The connection is to be closed after it."""
    request_id = f"req-{uuid.uuid4().hex}"
    status, body = http_of(error).status, error_object(error)
    log.info("request refused", request_id=request_id, status=status, error=error.reason, peer=peer)
    head = [STATUS_LINE[status]]
    head += [b"%b: %b\r\n" % header for header in (*default_headers, *error_headers(error))]
    head += [
        b"content-type: application/json\r\n",
        b"content-length: %d\r\n" % len(body),
        b"x-request-id: %b\r\n" % request_id.encode(),
        b"connection: close\r\n\r\n",
    ]
    return b"".join([*head, body])
