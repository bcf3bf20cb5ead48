"""Errors as `google.rpc.Status` and back.

The details follow https://google.aip.dev/193: `ErrorInfo` carries the reason,
`BadRequest` the field at fault, `RetryInfo` the time to wait.
"""

from __future__ import annotations

import grpc
import grpc.aio
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from services.chassis import errors
from services.chassis.tls import explain_failure

DOMAIN = "streamomni"

# gRPC drops a status whose metadata is above 8 KiB, and the text is in it up to three times.
_TEXT_LIMIT = 1000

# The most special class of a code comes first: the first match is taken.
CODE_OF_ERROR: tuple[tuple[type[errors.ServiceError], grpc.StatusCode], ...] = (
    (errors.InvalidRequest, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.Unsupported, grpc.StatusCode.UNIMPLEMENTED),
    (errors.Unauthenticated, grpc.StatusCode.UNAUTHENTICATED),
    (errors.PermissionDenied, grpc.StatusCode.PERMISSION_DENIED),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.Conflict, grpc.StatusCode.ABORTED),
    (errors.TooLarge, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.RateLimited, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.Unavailable, grpc.StatusCode.UNAVAILABLE),
    (errors.DeadlineExceeded, grpc.StatusCode.DEADLINE_EXCEEDED),
    (errors.ServiceError, grpc.StatusCode.INTERNAL),
)

_ERROR_OF_CODE: dict[int, type[errors.ServiceError]] = {
    code.value[0]: error
    for error, code in reversed(CODE_OF_ERROR)
    if error not in (errors.ServiceError, errors.RateLimited)
}
_RESOURCE_EXHAUSTED: int = grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
_CANCELLED: int = grpc.StatusCode.CANCELLED.value[0]


def status_of(error: BaseException) -> Status:
    """Turn an error into a status. What is not a `ServiceError` becomes a fixed text."""
    if not isinstance(error, errors.ServiceError):
        error = errors.InternalError()
    code = next(code for kind, code in CODE_OF_ERROR if isinstance(error, kind))
    message = error.message if len(error.message) <= _TEXT_LIMIT else f"{error.message[:_TEXT_LIMIT]}…"
    details: list[Any] = [_pack(ErrorInfo(reason=error.reason, domain=DOMAIN))]
    if error.param is not None:
        violation = BadRequest.FieldViolation(field=error.param, description=message)
        details.append(_pack(BadRequest(field_violations=[violation])))
    if error.retry_after is not None:
        retry = RetryInfo()
        retry.retry_delay.FromMilliseconds(round(error.retry_after * 1000))
        details.append(_pack(retry))
    return Status(code=code.value[0], message=message, details=details)


def error_of(status: Status) -> errors.ServiceError:
    """Turn a status into the error it was made from, as far as its details tell."""
    reason = param = retry_after = None
    for detail in status.details:
        if detail.Is(ErrorInfo.DESCRIPTOR):
            info = ErrorInfo()
            detail.Unpack(info)
            reason = info.reason
        elif detail.Is(BadRequest.DESCRIPTOR):
            bad_request = BadRequest()
            detail.Unpack(bad_request)
            param = bad_request.field_violations[0].field if bad_request.field_violations else None
        elif detail.Is(RetryInfo.DESCRIPTOR):
            retry = RetryInfo()
            detail.Unpack(retry)
            retry_after = retry.retry_delay.ToMilliseconds() / 1000
    if status.code == _CANCELLED:
        # We did not cancel, so the other side went away.
        return errors.Unavailable("the service behind this one ended the call; try again")
    kind = _ERROR_OF_CODE.get(status.code)
    if status.code == _RESOURCE_EXHAUSTED and retry_after is not None:
        kind = errors.RateLimited
    if kind is None:
        return errors.InternalError()
    return kind(status.message, param=param, reason=reason, retry_after=retry_after)


def error_of_call(call_error: grpc.aio.AioRpcError) -> errors.ServiceError:
    """Turn the error of an outgoing call into ours, with its details if it has any."""
    details = call_error.trailing_metadata()
    for key, value in details or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            return error_of(Status.FromString(value))
    code = call_error.code().value[0]
    return error_of(Status(code=code, message=explain_failure(call_error.details() or call_error.code().name)))


def grpc_status_of(error: BaseException) -> grpc.Status:
    """Turn an error into what `context.abort_with_status` takes."""
    return rpc_status.to_status(status_of(error))


def _pack(message: ErrorInfo | BadRequest | RetryInfo) -> Any:
    packed = Any()
    packed.Pack(message)
    return packed
