"""Connections that are kept open between requests, against real sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from services.cli.bench.connection import RequestFailed
from services.cli.bench.connection_pool import ConnectionPool
from services.cli.bench.target import parse_target
from tests.cli.bench.pools import pool_to, send
from tests.cli.bench.sse_server import CHUNKED_HEAD, DONE, LAST_CHUNK, Exchange, chunked, sized, token


async def test_connection_is_used_again() -> None:
    """One connection carries one answer after the other, refusals included."""

    async def script(exchange: Exchange) -> None:
        if exchange.number == 1:
            await exchange.send(sized("429 Too Many Requests", b"{}"))
        else:
            await exchange.answer(2)

    async with pool_to(script) as (server, pool):
        await send(pool)
        with pytest.raises(RequestFailed):
            await send(pool)
        await send(pool)
        assert (server.connections, len(server.exchanges)) == (1, 3)


async def test_closed_idle_connection_is_no_failure() -> None:
    """A connection that the server closes as the next request comes is replaced, and the request sent again."""

    async def script(exchange: Exchange) -> None:
        if exchange.number == 1:
            exchange.writer.close()
        else:
            await exchange.answer(2)

    async with pool_to(script) as (server, pool):
        await send(pool)
        assert (await send(pool)).chunks == 2
        assert (server.connections, len(server.exchanges)) == (2, 3)


async def test_connection_that_is_to_be_closed_is_not_used_again() -> None:
    """After an answer with `connection: close` the next request has a new one, though the old one still stands."""
    head = CHUNKED_HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")

    async def script(exchange: Exchange) -> None:
        await exchange.send(head, chunked(token() + DONE), LAST_CHUNK)

    async with pool_to(script) as (server, pool):
        await send(pool)
        await send(pool)
        assert (server.connections, len(server.exchanges)) == (2, 2)


async def test_cancelled_task_closes_the_connection() -> None:
    """When the run is over in the middle of an answer, the connection goes with it and is not used again."""
    begun, left = asyncio.Event(), asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD, chunked(token()))
        begun.set()
        await exchange.reader.read()
        left.set()

    async with pool_to(script) as (_, pool):
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(send(pool))
            await begun.wait()
            sending.cancel()
        async with asyncio.timeout(1):
            await left.wait()


async def test_server_that_never_answers_is_a_failure() -> None:
    """A new connection that is closed without a byte is not tried again."""

    async def script(exchange: Exchange) -> None:
        exchange.writer.close()

    async with pool_to(script) as (server, pool):
        with pytest.raises(RequestFailed) as failed:
            await send(pool)
        assert len(server.exchanges) == 1
    assert failed.value.failure.kind == "connection closed without an answer"


async def test_nobody_listening_is_a_failure() -> None:
    """A refused connection is told as none."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    pool = ConnectionPool(parse_target(f"http://127.0.0.1:{port}", None), "/v1/completions")
    with pytest.raises(RequestFailed) as failed:
        await send(pool)
    assert failed.value.failure.kind == "no connection"
