from __future__ import annotations

import grpc
import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from services.chassis import errors
from services.chassis.status import CODE_OF_ERROR, error_of, error_of_call, status_of

# Each error, the code that it travels under, and the class that it comes back as.
ROWS: list[tuple[type[errors.ServiceError], grpc.StatusCode, type[errors.ServiceError]]] = [
    (errors.InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT, errors.InvalidRequest),
    (errors.Unsupported, grpc.StatusCode.UNIMPLEMENTED, errors.Unsupported),
    (errors.Unauthenticated, grpc.StatusCode.UNAUTHENTICATED, errors.Unauthenticated),
    (errors.PermissionDenied, grpc.StatusCode.PERMISSION_DENIED, errors.PermissionDenied),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND, errors.NotFound),
    (errors.Conflict, grpc.StatusCode.ABORTED, errors.Conflict),
    (errors.TooLarge, grpc.StatusCode.RESOURCE_EXHAUSTED, errors.TooLarge),
    (errors.RateLimited, grpc.StatusCode.RESOURCE_EXHAUSTED, errors.RateLimited),
    (errors.Unavailable, grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
    (errors.Overloaded, grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
    (errors.Draining, grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
    (errors.Loading, grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
    (errors.DeadlineExceeded, grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceeded),
]


@pytest.mark.parametrize(("kind", "code", "back"), ROWS)
@pytest.mark.parametrize("param", [None, "max_tokens"])
@pytest.mark.parametrize("reason", [None, "FINER_CAUSE"])
@pytest.mark.parametrize("retry_after", [None, 2.5])
def test_error_survives_the_trip(
    kind: type[errors.ServiceError],
    code: grpc.StatusCode,
    back: type[errors.ServiceError],
    param: str | None,
    reason: str | None,
    retry_after: float | None,
) -> None:
    """Each error becomes its code and comes back with text, field, reason and time to wait."""
    if kind is errors.TooLarge and retry_after is not None:
        # The two share a code: what may be tried again later is a rate, not a size.
        back = errors.RateLimited
    error = kind("what was wrong, ö", param=param, reason=reason, retry_after=retry_after)
    status = status_of(error)
    found = error_of(Status.FromString(status.SerializeToString()))
    assert status.code == code.value[0]
    assert type(found) is back
    assert (found.message, found.param, found.reason) == ("what was wrong, ö", param, error.reason)
    assert found.retry_after == error.retry_after


def test_every_error_has_a_row() -> None:
    """No error is added without its place in the table above."""

    def below(kind: type[errors.ServiceError]) -> set[type[errors.ServiceError]]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__() if sub.__module__ == errors.__name__))

    assert below(errors.ServiceError) == {kind for kind, _, _ in ROWS} | {errors.ServiceError, errors.InternalError}
    assert {kind for kind, _ in CODE_OF_ERROR} <= below(errors.ServiceError)


def test_details_follow_googles_messages() -> None:
    """ErrorInfo carries reason and domain, BadRequest the field, RetryInfo the delay."""
    status = status_of(errors.Overloaded("full", param="n", retry_after=0.25))
    info, bad_request, retry = ErrorInfo(), BadRequest(), RetryInfo()
    assert status.details[0].Unpack(info) and status.details[1].Unpack(bad_request) and status.details[2].Unpack(retry)
    assert (info.reason, info.domain) == ("OVERLOADED", "streamomni")
    assert [(v.field, v.description) for v in bad_request.field_violations] == [("n", "full")]
    assert retry.retry_delay.ToMilliseconds() == 250


@pytest.mark.parametrize("error", [RuntimeError("the secret"), errors.InternalError()])
def test_unknown_errors_keep_their_text_to_themselves(error: Exception) -> None:
    """What is not an error for callers becomes INTERNAL with a fixed text, and comes back as InternalError."""
    status = status_of(error)
    assert status.code == grpc.StatusCode.INTERNAL.value[0]
    assert "secret" not in str(status)
    assert type(error_of(status)) is errors.InternalError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.CANCELLED, errors.Unavailable),
        (grpc.StatusCode.UNAVAILABLE, errors.Unavailable),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.TooLarge),
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.DeadlineExceeded),
        (grpc.StatusCode.UNKNOWN, errors.InternalError),
        (grpc.StatusCode.DATA_LOSS, errors.InternalError),
    ],
)
def test_status_of_others_is_read_by_its_code(code: grpc.StatusCode, kind: type[errors.ServiceError]) -> None:
    """A status without our details, as gRPC itself makes them, becomes the error of its code."""
    call_error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details="text")
    assert type(error_of_call(call_error)) is kind


def test_call_errors_bring_their_details() -> None:
    """The error of a call is read from the status in its trailing metadata."""
    status = status_of(errors.InvalidRequest("n is 0", param="n"))
    trailing = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    code = grpc.StatusCode.INVALID_ARGUMENT
    found = error_of_call(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailing, details="n is 0"))
    assert (type(found), found.message, found.param) == (errors.InvalidRequest, "n is 0", "n")


def test_long_texts_are_cut() -> None:
    """A text that quotes a huge value is cut, since gRPC drops a status whose metadata is above 8 KiB."""
    status = status_of(errors.InvalidRequest(f"{'x' * 100_000} is wrong", param="model"))
    assert len(status.SerializeToString()) < 4096
    assert status.message.startswith("xxx")
