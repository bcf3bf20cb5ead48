"""Peers that do not read, or do not answer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import cast

import structlog

from tests.frontend.conftest import Frontend, Starter
from tests.frontend.requests import texts
from tests.frontend.websocket.bare import FIN, PING, PONG, TEXT, bare, frame, pour, stop_reading
from tests.frontend.websocket.sockets import chunks, open_socket


async def test_signs_of_life(start: Starter) -> None:
    """A peer is pinged while nothing is said; one that answers stays, one that does not is given up."""
    frontend = await start(comment_interval_s=0.2, write_timeout_s=0.4)
    mute, lively = await bare(frontend), await bare(frontend)
    for _ in range(5):
        opcode, payload = await lively.next()
        assert opcode == FIN | PING
        lively.writer.write(frame(FIN | PONG, payload))
    assert await mute.closed_with() == 1011
    async with asyncio.timeout(5):
        assert await mute.reader.read() == b""
    lively.writer.write(frame(FIN | TEXT, b'{"type":"ping"}'))
    while (await lively.next())[0] != FIN | TEXT:
        pass
    for socket in (mute, lively):
        socket.writer.close()


async def test_pings_of_a_peer_that_reads_nothing(frontend: Frontend) -> None:
    """Answers to pings do not pile up for a peer that does not read them: it gets some, and is served when it reads
    on."""
    socket = await bare(frontend)
    stop_reading(socket)
    pings = 120_000
    await pour(socket, [frame(FIN | PING, b"x" * 125) * 1000] * (pings // 1000))
    cast("asyncio.Transport", socket.writer.transport).resume_reading()
    socket.writer.write(frame(FIN | TEXT, b'{"type":"ping"}'))
    answers = 0
    while (await socket.next())[0] == FIN | PONG:
        answers += 1
    assert 0 < answers < pings
    socket.writer.close()


async def test_a_peer_that_reads_nothing_is_given_up(start: Starter) -> None:
    """A peer that takes nothing for its time has its connection aborted, though it goes on sending."""
    frontend = await start(write_timeout_s=0.5, comment_interval_s=60)
    socket = await bare(frontend)
    stop_reading(socket)
    flood = frame(FIN | PING, b"x" * 125) * 1000
    async with asyncio.timeout(20):
        await pour(socket, (flood for _ in range(1_000_000)))
    socket.writer.close()


async def test_floods_of_small_messages(frontend: Frontend) -> None:
    """A peer that sends message after message without reading waits for its answers to be taken; others go on."""
    socket = await bare(frontend)
    stop_reading(socket)
    flood = frame(FIN | TEXT, b"{") * 1000

    async def send() -> None:
        await pour(socket, (flood for _ in range(2000)))

    sending = asyncio.create_task(send())
    await asyncio.sleep(1)
    assert not sending.done()
    async with open_socket(frontend) as other:
        await other.start("a", "one")
        assert texts(chunks(await other.until("done"))) == "one "
    sending.cancel()
    socket.writer.transport.abort()


async def test_the_end_while_answers_wait(frontend: Frontend) -> None:
    """When the service ends while a peer's answers wait to be read, that is no fault of the service."""
    socket = await bare(frontend)
    stop_reading(socket)
    with structlog.testing.capture_logs() as lines:
        sending = asyncio.create_task(pour(socket, [frame(FIN | TEXT, b"{") * 1000] * 2000))
        await asyncio.sleep(1)
        frontend.stopping.set()
        await asyncio.sleep(0.3)
        cast("asyncio.Transport", socket.writer.transport).resume_reading()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            assert await socket.closed_with() == 1001
        await frontend.task
    sending.cancel()
    socket.writer.close()
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []
