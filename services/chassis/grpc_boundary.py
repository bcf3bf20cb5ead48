"""The one place where calls enter: closes generators, tells errors, bounds writes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, cast

import grpc
import grpc.aio
import structlog

from services.chassis.errors import InternalError, ServiceError
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
    traceback and becomes INTERNAL with a fixed text.
    """

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Wrap the handler that would serve this call."""
        # grpc's stubs type a handler's functions as those of the threaded server.
        method: Any = await continuation(handler_call_details)
        if method is None or handler_call_details.method.startswith("/grpc."):
            return cast(grpc.RpcMethodHandler[Any, Any] | None, method)
        codec = {
            "request_deserializer": method.request_deserializer,
            "response_serializer": method.response_serializer,
        }
        if method.stream_stream:
            wrapped: Any = _streaming(method.stream_stream)
            return grpc.stream_stream_rpc_method_handler(wrapped, **codec)
        if method.unary_stream:
            wrapped = _streaming(method.unary_stream)
            return grpc.unary_stream_rpc_method_handler(wrapped, **codec)
        wrapped = _unary(method.unary_unary)
        return grpc.unary_unary_rpc_method_handler(wrapped, **codec)


def _unary(method: Callable[[Any, Context], Awaitable[Any]]) -> Callable[[Any, Context], Awaitable[Any]]:
    async def serve(request: Any, context: Context) -> Any:
        try:
            return await method(request, context)
        except Exception as error:  # noqa: BLE001 - this is the boundary; _abort logs and answers it
            await _abort(context, error)

    return serve


def _streaming(method: Callable[[Any, Context], Any]) -> Callable[[Any, Context], Awaitable[None]]:
    async def serve(request: Any, context: Context) -> None:
        try:
            if not inspect.isasyncgenfunction(method):
                await method(request, context)
                return
            async with aclosing(method(request, context)) as responses:
                async for response in responses:
                    await write(context, response)
        except Exception as error:  # noqa: BLE001 - this is the boundary; _abort logs and answers it
            await _abort(context, error)

    return serve


async def write(context: Context, message: Any) -> None:
    """Write one message; a reader that takes too long has its call cancelled.

    Raises:
        asyncio.CancelledError: the call ended, or its reader took nothing for
            `WRITE_TIMEOUT_SECONDS`.
    """
    try:
        async with asyncio.timeout(WRITE_TIMEOUT_SECONDS):
            await context.write(message)
    except TimeoutError:
        log.warning("call cancelled: its reader takes nothing", peer=context.peer())
        raise asyncio.CancelledError from None


async def _abort(context: Context, error: Exception) -> None:
    if isinstance(error, (grpc.aio.AbortError, grpc.aio.UsageError)):
        raise error
    if not isinstance(error, ServiceError):
        log.exception("call failed")
        error = InternalError()
    await context.abort_with_status(grpc_status_of(error))
