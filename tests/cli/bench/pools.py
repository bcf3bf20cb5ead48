"""A pool of connections to a server of a test's own making."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from services.cli.bench.connection_pool import ConnectionPool
from services.cli.bench.target import parse_target
from services.cli.bench.token_stream import TokenStream
from tests.cli.bench.sse_server import Script, SseServer, sse_server


@asynccontextmanager
async def pool_to(script: Script) -> AsyncGenerator[tuple[SseServer, ConnectionPool], None]:
    """A server and connections to it."""
    async with sse_server(script) as server:
        pool = ConnectionPool(parse_target(server.url, "key"), "/v1/completions")
        try:
            yield server, pool
        finally:
            pool.close()


async def send(pool: ConnectionPool, cancel_after: int | None = None) -> TokenStream:
    """Send a request and read its answer."""
    stream = TokenStream(1, cancel_after)
    async with asyncio.timeout(10):
        await pool.send(b'{"prompt":"x"}', stream)
    return stream
