"""A gRPC server with health, reflection, error texts and limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.chassis.channel import MESSAGE_LIMIT_BYTES
from services.chassis.grpc_boundary import Boundary
from services.chassis.settings import SettingsError
from services.chassis.tls import ServerTls

# Time that calls get to end by themselves once the service has drained.
_GRACE_SECONDS = 0.5

_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    # Idle clients may ping every 10 s without a GOAWAY.
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # A second process on the same port is an error, not a silent share.
    ("grpc.so_reuseport", 0),
    # Who connects to a TLS port and says nothing is sent away after this time.
    ("grpc.server_handshake_timeout_ms", 15_000),
]


class Health:
    """The health that `grpc.health.v1` reports, for the server and its services."""

    def __init__(self, servicer: health.aio.HealthServicer, services: Sequence[str]) -> None:
        self._servicer = servicer
        self._names = ["", *services]

    async def set_serving(self, serving: bool) -> None:
        """Report SERVING or NOT_SERVING to all checks and watches."""
        response = health_pb2.HealthCheckResponse
        status = response.SERVING if serving else response.NOT_SERVING
        for name in self._names:
            await self._servicer.set(name, status)


@asynccontextmanager
async def grpc_server(
    host: str,
    port: int,
    services: Sequence[str],
    register: Callable[[grpc.aio.Server], None],
    tls: ServerTls | None = None,
) -> AsyncGenerator[tuple[int, Health], None]:
    """Serve until the block is left; health begins as NOT_SERVING.

    Args:
        services: full names of the services, for health and reflection.
        register: adds the servicers to the server.
        tls: what callers are shown and must show; None is plain text.

    Yields: the port, which differs from `port` where that is 0, and the health.

    Raises:
        SettingsError: the port is taken.
    """
    server = grpc.aio.server(interceptors=[Boundary()], options=_OPTIONS)
    register(server)
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    reflection.enable_server_reflection([*services, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
    try:
        address = f"{host}:{port}"
        bound_port = (
            server.add_insecure_port(address) if tls is None else server.add_secure_port(address, tls.credentials())
        )
    except RuntimeError as error:
        raise SettingsError(f"port {host}:{port} cannot be opened; is another service using it?") from error
    health_state = Health(health_servicer, services)
    await health_state.set_serving(False)
    await server.start()
    try:
        yield bound_port, health_state
    finally:
        await asyncio.shield(server.stop(_GRACE_SECONDS))
