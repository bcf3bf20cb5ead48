"""A gRPC service of plain bytes, for tests of what surrounds any service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from services.chassis.channel import open_channel
from services.chassis.grpc_boundary import Boundary
from services.chassis.grpc_server import grpc_server
from services.chassis.tls import ServerTls

SERVICE = "test.v1.ByteService"
Methods = dict[str, Any]


def method_path(name: str) -> str:
    """The full name of a method, as a channel wants it."""
    return f"/{SERVICE}/{name}"


def call_unary(channel: grpc.aio.Channel, request: bytes = b"") -> Any:
    """Call the method `Unary`."""
    method: Any = channel.unary_unary(method_path("Unary"))
    return method(request)


def call_stream(channel: grpc.aio.Channel, request: bytes = b"", timeout: float | None = None) -> Any:
    """Call the method `Stream`."""
    method: Any = channel.unary_stream(method_path("Stream"))
    return method(request, timeout=timeout)


def call_link(channel: grpc.aio.Channel, commands: Iterable[bytes] | None = None) -> Any:
    """Call the method `Link`; with `commands`, those are sent and then the own side is closed."""
    method: Any = channel.stream_stream(method_path("Link"))
    return method(None if commands is None else iter(commands))


@asynccontextmanager
async def serving(methods: Methods, port: int = 0, tls: ServerTls | None = None) -> AsyncGenerator[int, None]:
    """Serve the methods as a tier does; gives the port."""

    def register(server: grpc.aio.Server) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))

    async with grpc_server("127.0.0.1", port, [SERVICE], register, tls) as (bound, _):
        yield bound


@asynccontextmanager
async def channel_to(methods: Methods) -> AsyncGenerator[grpc.aio.Channel, None]:
    """A channel to a server of these methods."""
    async with serving(methods) as port, open_channel(f"127.0.0.1:{port}") as channel:
        yield channel


@asynccontextmanager
async def channel_with_write_timeout(methods: Methods, seconds: float) -> AsyncGenerator[grpc.aio.Channel, None]:
    """A channel to a server that gives a reader these seconds for each message."""
    server = grpc.aio.server(interceptors=[Boundary(seconds)])
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with open_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(0)
