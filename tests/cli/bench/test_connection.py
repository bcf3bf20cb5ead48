"""Connections against real sockets that answer well, badly or not at all."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.cli.bench.connection import RequestFailed
from tests.cli.bench.pools import pool_to, send
from tests.cli.bench.sse_server import (
    CHUNKED_HEAD,
    DONE,
    HEAD,
    LAST_CHUNK,
    Exchange,
    Script,
    chunked,
    event,
    sized,
    token,
    usage,
)


async def failure_of(script: Script) -> tuple[str, str]:
    """Kind and message of the failure that a request ends in."""
    async with pool_to(script) as (_, pool):
        with pytest.raises(RequestFailed) as failed:
            await send(pool)
    return failed.value.failure.kind, failed.value.failure.message


async def test_good_answer_is_read() -> None:
    """Tokens, usage and the end arrive, and the request is what was to be sent."""
    async with pool_to(lambda exchange: exchange.answer(4)) as (server, pool):
        stream = await send(pool)
    assert (stream.chunks, stream.usage and stream.usage.completion_tokens) == (4, 4)
    (exchange,) = server.exchanges
    assert exchange.head.startswith("POST /v1/completions HTTP/1.1\r\n")
    assert f"\r\nhost: 127.0.0.1:{server.port}\r\n" in exchange.head
    assert "\r\nauthorization: Bearer key\r\n" in exchange.head
    assert exchange.body == {"prompt": "x"}


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 2000), max_size=6), st.lists(st.integers(1, 5), min_size=1, max_size=4))
async def test_segments_and_chunks_may_be_cut_anywhere(cuts: list[int], groups: list[int]) -> None:
    """HTTP chunks that hold several events or parts of one, in TCP segments that hold parts of chunks, are the same."""
    events = b"".join([token() for _ in range(8)]) + usage(8) + DONE
    ends = [len(events) * end // sum(groups) for end in range(0, sum(groups) + 1, groups[0])] + [len(events)]
    pieces = [events[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end]
    whole = CHUNKED_HEAD + b"".join(map(chunked, pieces)) + LAST_CHUNK
    places = sorted({min(cut, len(whole)) for cut in cuts})
    segments = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
    async with pool_to(lambda exchange: exchange.send(*segments, pause_s=0.0005)) as (_, pool):
        stream = await send(pool)
    assert (stream.chunks, stream.usage and stream.usage.completion_tokens) == (8, 8)


@pytest.mark.parametrize("head", [HEAD + b"connection: close\r\n\r\n", HEAD.replace(b"1.1", b"1.0") + b"\r\n"])
async def test_answer_may_end_with_the_connection(head: bytes) -> None:
    """A body without length or chunks is whole when the server closes after its last event."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(head, token(), usage(1), DONE)
        exchange.writer.close()

    async with pool_to(script) as (server, pool):
        assert (await send(pool)).chunks == 1
        assert (await send(pool)).chunks == 1
        assert server.connections == 2


async def test_leaving_closes_the_connection() -> None:
    """A request that is cancelled after its chunks closes its connection at once, which the server notices."""
    left = asyncio.Event()

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD, *map(chunked, [token(), token(), token()]))
        await exchange.reader.read()
        left.set()

    async with pool_to(script) as (_, pool):
        stream = await send(pool, cancel_after=2)
        assert stream.is_cut and stream.chunks == 2
        async with asyncio.timeout(1):
            await left.wait()


async def test_refusal_is_told_with_its_code() -> None:
    """A status other than 200 is the failure, with the error object's code and message."""
    body = b'{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}'
    found = await failure_of(lambda exchange: exchange.send(sized("404 Not Found", body)))
    assert found == ("HTTP 404 model_not_found", "no such model")


async def test_refusal_may_end_with_the_connection() -> None:
    """A refusal without a length is read to the end of the connection."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 503 Unavailable\r\n\r\nbusy")
        exchange.writer.close()

    assert await failure_of(script) == ("HTTP 503", "busy")


async def test_answer_that_is_no_stream_is_a_failure() -> None:
    """A 200 with a JSON body is not taken for a stream without tokens."""
    found = await failure_of(lambda exchange: exchange.send(sized("200 OK", b"{}")))
    assert found == ("answer is no event stream", "its content-type is 'application/json'")


async def test_missing_done_is_a_failure() -> None:
    """A stream that ends in good HTTP form but without [DONE] is not whole."""
    found = await failure_of(lambda exchange: exchange.send(CHUNKED_HEAD, chunked(token()), LAST_CHUNK))
    assert found == ("stream ended without [DONE]", "after 1 chunks with tokens")


async def test_error_event_is_a_failure() -> None:
    """An error in the stream is told with its type, without waiting for the stream's end."""
    error = event({"error": {"message": "the engine died", "type": "server_error", "code": None}})

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD, chunked(token()), chunked(error))
        await exchange.reader.read()

    assert await failure_of(script) == ("error event server_error", "the engine died")


async def test_connection_that_closes_in_the_stream_is_a_failure() -> None:
    """A server that goes away in the middle of a stream leaves one without [DONE]."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD, chunked(token()))
        exchange.writer.close()

    assert (await failure_of(script))[0] == "stream ended without [DONE]"


async def reset(exchange: Exchange) -> None:
    """Close the connection as a process that dies with unread bytes does."""
    # What was sent before must have been read: a reset discards it.
    await asyncio.sleep(0.05)
    linger = struct.pack("ii", 1, 0)
    exchange.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    exchange.writer.transport.abort()


async def test_reset_is_a_failure() -> None:
    """A connection that is reset in the middle of a stream is told as broken."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD, chunked(token()))
        await reset(exchange)

    kind, message = await failure_of(script)
    assert kind == "connection broke in the answer" and "reset" in message.lower()


async def test_reset_after_the_end_is_no_failure() -> None:
    """Once [DONE] has come, the answer is whole, however the connection goes."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(CHUNKED_HEAD, chunked(token()), chunked(DONE))
        await reset(exchange)

    async with pool_to(script) as (_, pool):
        assert (await send(pool)).chunks == 1


async def test_answer_that_is_no_http_is_a_failure() -> None:
    """What the parser refuses is told as malformed."""
    kind, _ = await failure_of(lambda exchange: exchange.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"))
    assert kind == "malformed HTTP"
