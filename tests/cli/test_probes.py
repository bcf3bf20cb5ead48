"""Asking real servers whether they serve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import grpc.aio
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from services.cli.probes import GrpcHealthProbe, HttpProbe
from services.cli.tier import Probe
from tests.cli.scripted_http import chat_server
from tests.cli.scripted_service import free_port

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def health_server(port: str) -> AsyncGenerator[health.aio.HealthServicer, None]:
    """Serve health on a port until the block is left."""
    server = grpc.aio.server()
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await servicer.set("", NOT_SERVING)
    await server.start()
    try:
        yield servicer
    finally:
        await server.stop(None)


async def is_ready(probe: Probe, seconds: float) -> bool:
    """Whether the probe says ready within that time."""
    try:
        async with asyncio.timeout(seconds):
            await probe.until_ready()
    except TimeoutError:
        return False
    return True


async def test_grpc_server_is_ready_when_it_says_so() -> None:
    """No server is not ready, and neither is one that says NOT_SERVING; the probe waits through both."""
    port = free_port()
    probe = GrpcHealthProbe(f"127.0.0.1:{port}")
    assert not await is_ready(probe, 0.5)
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(is_ready(probe, 20))
        await asyncio.sleep(0.5)
        async with health_server(port) as servicer:
            await asyncio.sleep(1.0)
            assert not waiting.done()
            await servicer.set("", SERVING)
            assert await waiting


async def test_http_server_is_ready_when_it_answers_200(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server and an error status are not ready; a proxy of the environment is not asked."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    assert not await is_ready(HttpProbe(f"http://127.0.0.1:{free_port()}/v1/models"), 0.5)
    with chat_server("tiny") as server:
        assert not await is_ready(HttpProbe(f"{server.url}/elsewhere"), 0.5)
        assert await is_ready(HttpProbe(f"{server.url}/v1/models"), 20)
