from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.chassis import grpc_server as module
from services.chassis.channel import MESSAGE_LIMIT_BYTES, open_channel
from services.chassis.grpc_boundary import Context
from services.chassis.grpc_server import grpc_server
from services.chassis.settings import SettingsError
from tests.chassis.byte_service import SERVICE, call_stream, call_unary, channel_to, serving


async def echo(request: bytes, context: Context) -> bytes:
    """Gives back what it gets."""
    return request


METHODS: dict[str, Any] = {"Unary": grpc.unary_unary_rpc_method_handler(echo)}
STATUS = health_pb2.HealthCheckResponse


async def test_busy_port_is_told_in_one_line() -> None:
    """A port that any other socket holds is a SettingsError of one line that names it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}") as refusal:
            async with serving(METHODS, port):
                pass
    assert "\n" not in str(refusal.value)


async def test_second_server_cannot_share_a_port() -> None:
    """Two servers never serve one port in turns: the second is refused."""
    async with serving(METHODS) as port:
        with pytest.raises(SettingsError):
            async with serving(METHODS, port):
                pass


async def test_port_is_free_again_afterwards() -> None:
    """Leaving the block closes the port."""
    async with serving(METHODS) as port:
        pass
    async with serving(METHODS, port) as again:
        assert again == port


async def test_messages_above_four_megabytes_are_served() -> None:
    """Messages up to our own limit pass in both directions."""
    async with channel_to(METHODS) as channel:
        message = b"x" * (MESSAGE_LIMIT_BYTES // 2)
        assert await call_unary(channel, message) == message


async def test_message_above_the_limit_is_refused() -> None:
    """A message above the limit is RESOURCE_EXHAUSTED with both figures, and the next call is served."""
    async with serving(METHODS) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await call_unary(channel, b"x" * (MESSAGE_LIMIT_BYTES + 1))
        assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert str(MESSAGE_LIMIT_BYTES) in (refusal.value.details() or "")
        assert await call_unary(channel, b"small") == b"small"


async def test_health_follows_for_server_and_service() -> None:
    """Health begins as NOT_SERVING and follows `set_serving`, for checks and watches, under both names."""
    async with (
        grpc_server("127.0.0.1", 0, [SERVICE], lambda server: None) as (port, health),
        open_channel(f"127.0.0.1:{port}") as channel,
    ):
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert (await watch.read()).status == STATUS.NOT_SERVING
        for serving_now, status in ((True, STATUS.SERVING), (False, STATUS.NOT_SERVING)):
            await health.set_serving(serving_now)
            assert (await asyncio.wait_for(watch.read(), 1.0)).status == status
            for name in ("", SERVICE):
                assert (await stub.Check(health_pb2.HealthCheckRequest(service=name))).status == status
        watch.cancel()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await stub.Check(health_pb2.HealthCheckRequest(service="other"))
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_the_services() -> None:
    """Reflection lists the service, health and itself."""
    async with channel_to(METHODS) as channel:
        # Its types are those of the threaded client.
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type]
        call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        names = {service.name for service in (await call.read()).list_services_response.service}
        call.cancel()
    assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def test_idle_clients_may_ping() -> None:
    """The options that spare pinging clients a GOAWAY have the names that gRPC knows; it ignores others silently."""
    options = dict(module._OPTIONS)
    assert options["grpc.http2.max_ping_strikes"] == 0
    assert options["grpc.http2.min_ping_interval_without_data_ms"] == 10_000
    assert options["grpc.keepalive_permit_without_calls"] == 1


async def test_open_calls_are_ended_when_the_server_stops() -> None:
    """A call that never ends by itself does not hold the server's end up, and its method is closed."""
    ended = asyncio.Event()

    async def waits(request: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        try:
            yield b""
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asyncio.timeout(5.0):
        async with serving({"Stream": grpc.unary_stream_rpc_method_handler(waits)}) as port:
            channel = open_channel(f"127.0.0.1:{port}")
            call = call_stream(channel)
            await call.read()
        await ended.wait()
        assert await call.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        await channel.close()
