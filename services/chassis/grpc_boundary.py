"""The one place where calls enter: closes generators, tells errors, bounds writes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError

from services.chassis.errors import InternalError, InvalidRequest, ServiceError, Unavailable
from services.chassis.status import grpc_status_of

log = structlog.get_logger(__name__)

# A reader that takes nothing for this long has its call ended.
WRITE_TIMEOUT_SECONDS = 30.0

Context = grpc.aio.ServicerContext[Any, Any]


class Boundary(grpc.aio.ServerInterceptor):
    """Wraps every handler.

    grpc.aio never closes a handler's generator, so a streaming handler is driven
    from here and closed when its call ends, however it ends. A `ServiceError`
    becomes its status with details; any other exception is logged once with its
    traceback and becomes INTERNAL with a fixed text. Bytes that are no request of
    the method are INVALID_ARGUMENT, where gRPC alone would call it a fault of ours.

    Args:
        write_timeout: seconds that a reader gets to take one message.
    """

    def __init__(self, write_timeout: float = WRITE_TIMEOUT_SECONDS) -> None:
        self._write_timeout = write_timeout

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Wrap the handler that would serve this call."""
        # grpc's stubs type a handler's functions as those of the threaded server.
        method: Any = await continuation(handler_call_details)
        if method is None or handler_call_details.method.startswith("/grpc."):
            return cast("grpc.RpcMethodHandler[Any, Any] | None", method)
        codec = {
            "request_deserializer": _lenient(method.request_deserializer),
            "response_serializer": method.response_serializer,
        }
        if method.stream_stream:
            wrapped: Any = _streaming(method.stream_stream, self._write_timeout)
            return grpc.stream_stream_rpc_method_handler(wrapped, **codec)
        if method.unary_stream:
            wrapped = _streaming(method.unary_stream, self._write_timeout)
            return grpc.unary_stream_rpc_method_handler(wrapped, **codec)
        wrapped = _unary(method.unary_unary)
        return grpc.unary_unary_rpc_method_handler(wrapped, **codec)


def _unary(method: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    async def serve(request: Any, context: Context) -> Any:
        try:
            return await method(_readable(request), context)
        except Exception as error:  # noqa: BLE001 - this is the boundary; _abort logs and answers it
            await _abort(context, error)

    return serve


def _streaming(
    method: Callable[[Any, Context], Any], write_timeout: float
) -> Callable[[Any, Context], Awaitable[None]]:
    async def serve(request: Any, context: Context) -> None:
        try:
            request = _ReadableRequests(request) if hasattr(request, "__aiter__") else _readable(request)
            if not inspect.isasyncgenfunction(method):
                await method(request, context)
                return
            async with aclosing(method(request, context)) as responses:
                async for response in responses:
                    await write(context, response, write_timeout)
        except Exception as error:  # noqa: BLE001 - this is the boundary; _abort logs and answers it
            await _abort(context, error)

    return serve


_UNREADABLE = object()


def _lenient(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    """Leave it to the method's call to refuse what cannot be read: here gRPC would answer by itself."""
    if deserialize is None:
        return None

    def read(message: bytes) -> Any:
        try:
            return deserialize(message)
        except DecodeError:
            return _UNREADABLE

    return read


def _readable(request: Any) -> Any:
    if request is _UNREADABLE:
        raise InvalidRequest("the request is no message of this method; send one as its .proto says")
    return request


class _ReadableRequests:
    """A caller's stream of requests, up to the first that cannot be read."""

    def __init__(self, requests: AsyncIterable[Any]) -> None:
        self._requests = requests

    def __aiter__(self) -> _ReadableRequests:
        # Not before it is read: what gRPC makes here must be.
        self._iterator = aiter(self._requests)
        return self

    async def __anext__(self) -> Any:
        return _readable(await anext(self._iterator))


async def write(context: Context, message: Any, timeout: float = WRITE_TIMEOUT_SECONDS) -> None:
    """Write one message.

    Raises:
        asyncio.CancelledError: the call ended.
        Unavailable: its reader took nothing for `timeout` seconds. It learns so
            when it reads on.
    """
    try:
        async with asyncio.timeout(timeout):
            await context.write(message)
    except TimeoutError:
        log.warning("call ended: its reader takes nothing", peer=context.peer())
        raise Unavailable(f"ended: its reader took nothing for {timeout:g} s; read faster") from None


async def _abort(context: Context, error: Exception) -> None:
    # gRPC's own answers: an InternalError is a write to a client that has left.
    if isinstance(error, (grpc.aio.AbortError, grpc.aio.UsageError, grpc.aio.InternalError)):
        raise error
    if not isinstance(error, ServiceError):
        log.exception("call failed")
        error = InternalError()
    await context.abort_with_status(grpc_status_of(error))
