"""The errors that services tell their callers.

Each class says whose fault it is and maps to one gRPC status (`status.py`) and
one HTTP status. The finer cause is `reason`, in UPPER_SNAKE_CASE. Cancellation
is not among them: it is `asyncio.CancelledError`.
"""

from __future__ import annotations

from typing import ClassVar


class ServiceError(Exception):
    """Base of all errors that a caller may see.

    Args:
        message: one line: what was wrong, what is allowed, what to do.
        param: name of the request's field at fault, if one is.
        reason: finer cause in UPPER_SNAKE_CASE; the class's own by default.
        retry_after: seconds after which the same call may succeed.
    """

    default_reason: ClassVar[str] = "INTERNAL"
    default_retry_after: ClassVar[float | None] = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        reason: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.reason = reason or self.default_reason
        self.retry_after = retry_after if retry_after is not None else self.default_retry_after


class InvalidRequest(ServiceError):
    """The caller's request is wrong; the same request will never succeed."""

    default_reason = "INVALID_REQUEST"


class Unsupported(ServiceError):
    """The request is sound, but this version cannot serve it."""

    default_reason = "UNSUPPORTED"


class Unauthenticated(ServiceError):
    """The caller did not prove who it is."""

    default_reason = "UNAUTHENTICATED"


class PermissionDenied(ServiceError):
    """The caller may not do this."""

    default_reason = "PERMISSION_DENIED"


class NotFound(ServiceError):
    """What the caller named does not exist."""

    default_reason = "NOT_FOUND"


class Conflict(ServiceError):
    """Something else is under way that excludes this."""

    default_reason = "CONFLICT"


class TooLarge(ServiceError):
    """The request exceeds a size that the service accepts."""

    default_reason = "TOO_LARGE"


class RateLimited(ServiceError):
    """The caller sent more than its share."""

    default_reason = "RATE_LIMITED"
    default_retry_after = 1.0


class Unavailable(ServiceError):
    """The service cannot serve now; the same request may succeed later."""

    default_reason = "UNAVAILABLE"
    default_retry_after = 1.0


class Overloaded(Unavailable):
    """All places are taken."""

    default_reason = "OVERLOADED"


class Draining(Unavailable):
    """The service ends and takes nothing new."""

    default_reason = "DRAINING"


class Loading(Unavailable):
    """What is asked for is still being loaded."""

    default_reason = "LOADING"
    default_retry_after = 5.0


class DeadlineExceeded(ServiceError):
    """The caller's time is over."""

    default_reason = "DEADLINE_EXCEEDED"


class InternalError(ServiceError):
    """A fault of the service. Its text never holds that of an unknown exception."""

    def __init__(self) -> None:
        super().__init__("internal error; the service's log tells its cause under this request's id")
