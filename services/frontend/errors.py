"""Errors as HTTP responses with OpenAI's error object.

The shape: https://platform.openai.com/docs/guides/error-codes. The SDKs obey
`retry-after-ms`, `retry-after` and `x-should-retry`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import orjson

from services.chassis import errors


class UnknownPath(errors.NotFound):
    """Nothing is served at this path."""


class MethodNotAllowed(errors.InvalidRequest):
    """The path exists, but not for this method.

    Args:
        allowed: the methods, as the Allow header has them.
    """

    def __init__(self, message: str, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class RequestTimeout(errors.InvalidRequest):
    """The caller did not send its request in time."""

    default_reason = "REQUEST_TIMEOUT"


class UnsupportedMediaType(errors.InvalidRequest):
    """The body is encoded in a way that is not read here."""

    default_reason = "UNSUPPORTED_MEDIA_TYPE"


class HeadersTooLarge(errors.InvalidRequest):
    """The request's headers exceed the limit."""

    default_reason = "HEADERS_TOO_LARGE"


class UpgradeRequired(errors.InvalidRequest):
    """Only WebSockets are served at this path."""

    default_reason = "UPGRADE_REQUIRED"


class StreamCancelled(errors.ServiceError):
    """The stream was ended by a request for that."""

    default_reason = "CANCELLED"


class StreamGone(errors.NotFound):
    """The part of a stream that is asked for is not kept any more."""

    default_reason = "EVENTS_GONE"


@dataclass(frozen=True, slots=True)
class HttpError:
    """How a kind of error looks over HTTP. `retry`: what SDKs are told to do, None leaves it to them."""

    status: int
    type: str
    retry: bool | None = None


# The most special class comes first: the first match is taken.
HTTP_OF_ERROR: tuple[tuple[type[errors.ServiceError], HttpError], ...] = (
    (MethodNotAllowed, HttpError(405, "invalid_request_error")),
    (RequestTimeout, HttpError(408, "invalid_request_error", retry=False)),
    (UnsupportedMediaType, HttpError(415, "invalid_request_error")),
    (HeadersTooLarge, HttpError(431, "invalid_request_error")),
    (UpgradeRequired, HttpError(426, "invalid_request_error")),
    (StreamCancelled, HttpError(409, "invalid_request_error", retry=False)),
    (StreamGone, HttpError(410, "invalid_request_error")),
    (errors.InvalidRequest, HttpError(400, "invalid_request_error")),
    (errors.Unsupported, HttpError(400, "invalid_request_error")),
    (errors.Unauthenticated, HttpError(401, "authentication_error")),
    (errors.PermissionDenied, HttpError(403, "permission_error")),
    (errors.NotFound, HttpError(404, "invalid_request_error")),
    (errors.Conflict, HttpError(409, "invalid_request_error")),
    (errors.TooLarge, HttpError(413, "invalid_request_error")),
    (errors.RateLimited, HttpError(429, "rate_limit_error", retry=True)),
    (errors.Unavailable, HttpError(503, "server_error", retry=True)),
    # The same time would run out again.
    (errors.DeadlineExceeded, HttpError(504, "server_error", retry=False)),
    (errors.ServiceError, HttpError(500, "server_error")),
)

# Reasons that say no more than the status does.
_REASONS_WITHOUT_CODE = {errors.InvalidRequest.default_reason, errors.InternalError.default_reason}


def http_of(error: errors.ServiceError) -> HttpError:
    """Return how an error looks over HTTP."""
    return next(http for kind, http in HTTP_OF_ERROR if isinstance(error, kind))


def error_object(error: errors.ServiceError) -> bytes:
    """Return OpenAI's error object, as JSON. It has all four keys."""
    return orjson.dumps({"error": error_fields(error)})


def error_fields(error: errors.ServiceError) -> dict[str, str | None]:
    """Return the members of OpenAI's error object."""
    return {
        "message": error.message,
        "type": http_of(error).type,
        "param": error.param,
        "code": _code_of(error),
    }


def error_headers(error: errors.ServiceError) -> list[tuple[bytes, bytes]]:
    """Return the headers that tell callers whether and when to try again, and which methods and
    authentication there are."""
    headers: list[tuple[bytes, bytes]] = []
    if error.retry_after is not None:
        # Retry-After knows whole seconds only.
        headers.append((b"retry-after", b"%d" % math.ceil(error.retry_after)))
        headers.append((b"retry-after-ms", b"%d" % round(error.retry_after * 1000)))
    retry = http_of(error).retry
    if retry is not None:
        headers.append((b"x-should-retry", b"true" if retry else b"false"))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allowed.encode()))
    if isinstance(error, UpgradeRequired):
        # https://www.rfc-editor.org/rfc/rfc9110#section-15.5.22
        headers += [(b"upgrade", b"websocket"), (b"connection", b"upgrade")]
    if isinstance(error, errors.Unauthenticated):
        # https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1
        headers.append((b"www-authenticate", b"Bearer"))
    return headers


def _code_of(error: errors.ServiceError) -> str | None:
    if isinstance(error, UnknownPath) or error.reason in _REASONS_WITHOUT_CODE:
        return None
    if isinstance(error, errors.NotFound) and error.reason == errors.NotFound.default_reason:
        # All that callers of this tier can name is a model.
        return "model_not_found"
    return error.reason.lower()
