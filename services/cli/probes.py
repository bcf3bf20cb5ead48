"""Asking a tier whether it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc.aio
import httpx
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.chassis.channel import open_channel

_POLL_SECONDS = 0.25
# A loaded tier may answer late; this only bounds how long a lost answer is waited for.
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class GrpcHealthProbe:
    """Asks grpc.health.v1 for the health of the whole server.

    Args:
        target: the server's address, host:port.
    """

    target: str

    async def until_ready(self) -> None:
        """Return once the server says SERVING."""
        async with open_channel(self.target) as channel:
            # Its published types lack its methods.
            stub: Any = health_pb2_grpc.HealthStub(channel)
            await _until(lambda: _is_serving(stub))


async def _is_serving(stub: Any) -> bool:
    try:
        response = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_ANSWER_SECONDS)
    except grpc.aio.AioRpcError:
        return False
    return bool(response.status == health_pb2.HealthCheckResponse.SERVING)


@dataclass(frozen=True, slots=True)
class HttpProbe:
    """Asks a page that answers 200 when its server serves.

    Args:
        url: the page's address.
    """

    url: str

    async def until_ready(self) -> None:
        """Return once the page answers 200."""
        # A proxy from the environment has no business between two processes of one machine.
        async with httpx.AsyncClient(timeout=_ANSWER_SECONDS, trust_env=False) as client:
            await _until(lambda: self._answers_200(client))

    async def _answers_200(self, client: httpx.AsyncClient) -> bool:
        try:
            response = await client.get(self.url)
        except httpx.TransportError:
            return False
        return response.status_code == httpx.codes.OK


async def _until(check: Callable[[], Awaitable[bool]]) -> None:
    while True:
        if await check():
            return
        await asyncio.sleep(_POLL_SECONDS)
