"""The table from errors to HTTP, row by row."""

from __future__ import annotations

import orjson
import pytest

from services.chassis import errors
from services.frontend.errors import (
    HTTP_OF_ERROR,
    HeadersTooLarge,
    MethodNotAllowed,
    RequestTimeout,
    StreamCancelled,
    StreamGone,
    UnknownPath,
    UnsupportedMediaType,
    UpgradeRequired,
    error_headers,
    error_object,
    http_of,
)

# error, status, type, code, headers
ROWS: list[tuple[errors.ServiceError, int, str, str | None, dict[str, str]]] = [
    (errors.InvalidRequest("m"), 400, "invalid_request_error", None, {}),
    (errors.InvalidRequest("m", reason="EMPTY_PROMPT"), 400, "invalid_request_error", "empty_prompt", {}),
    (
        errors.InvalidRequest("m", reason="CONTEXT_LENGTH_EXCEEDED"),
        400,
        "invalid_request_error",
        "context_length_exceeded",
        {},
    ),
    (errors.Unsupported("m"), 400, "invalid_request_error", "unsupported", {}),
    (errors.Unauthenticated("m"), 401, "authentication_error", "unauthenticated", {"www-authenticate": "Bearer"}),
    (errors.PermissionDenied("m"), 403, "permission_error", "permission_denied", {}),
    (errors.NotFound("m"), 404, "invalid_request_error", "model_not_found", {}),
    (errors.NotFound("m", reason="MODEL_NOT_FOUND"), 404, "invalid_request_error", "model_not_found", {}),
    (UnknownPath("m"), 404, "invalid_request_error", None, {}),
    (MethodNotAllowed("m", "GET, HEAD"), 405, "invalid_request_error", None, {"allow": "GET, HEAD"}),
    (RequestTimeout("m"), 408, "invalid_request_error", "request_timeout", {"x-should-retry": "false"}),
    (errors.Conflict("m"), 409, "invalid_request_error", "conflict", {}),
    (StreamCancelled("m"), 409, "invalid_request_error", "cancelled", {"x-should-retry": "false"}),
    (StreamGone("m"), 410, "invalid_request_error", "events_gone", {}),
    (errors.TooLarge("m"), 413, "invalid_request_error", "too_large", {}),
    (UnsupportedMediaType("m"), 415, "invalid_request_error", "unsupported_media_type", {}),
    (
        UpgradeRequired("m"),
        426,
        "invalid_request_error",
        "upgrade_required",
        {"upgrade": "websocket", "connection": "upgrade"},
    ),
    (HeadersTooLarge("m"), 431, "invalid_request_error", "headers_too_large", {}),
    (
        errors.RateLimited("m", retry_after=0.25),
        429,
        "rate_limit_error",
        "rate_limited",
        {"retry-after": "1", "retry-after-ms": "250", "x-should-retry": "true"},
    ),
    (
        errors.Unavailable("m"),
        503,
        "server_error",
        "unavailable",
        {"retry-after": "1", "retry-after-ms": "1000", "x-should-retry": "true"},
    ),
    (
        errors.Overloaded("m", retry_after=2.5),
        503,
        "server_error",
        "overloaded",
        {"retry-after": "3", "retry-after-ms": "2500", "x-should-retry": "true"},
    ),
    (
        errors.Draining("m"),
        503,
        "server_error",
        "draining",
        {"retry-after": "1", "retry-after-ms": "1000", "x-should-retry": "true"},
    ),
    (
        errors.Loading("m"),
        503,
        "server_error",
        "loading",
        {"retry-after": "5", "retry-after-ms": "5000", "x-should-retry": "true"},
    ),
    (errors.DeadlineExceeded("m"), 504, "server_error", "deadline_exceeded", {"x-should-retry": "false"}),
    (errors.InternalError(), 500, "server_error", None, {}),
]


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "headers"), ROWS, ids=[f"{type(row[0]).__name__}-{row[3]}" for row in ROWS]
)
def test_row(error: errors.ServiceError, status: int, kind: str, code: str | None, headers: dict[str, str]) -> None:
    """Each error has its status, OpenAI's four keys, and the headers that tell when to try again."""
    assert http_of(error).status == status
    assert orjson.loads(error_object(error)) == {
        "error": {"message": error.message, "type": kind, "param": None, "code": code}
    }
    assert {name.decode(): value.decode() for name, value in error_headers(error)} == headers


def test_the_field_at_fault_is_named() -> None:
    """The error object carries the name of the field."""
    assert orjson.loads(error_object(errors.InvalidRequest("m", param="top_p")))["error"]["param"] == "top_p"


def test_each_row_of_the_table_is_proven() -> None:
    """No row of the table is without a row here, and none hides behind one before it."""
    matched = {next(kind for kind, _ in HTTP_OF_ERROR if isinstance(row[0], kind)) for row in ROWS}
    assert matched == {kind for kind, _ in HTTP_OF_ERROR}
