from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from google.rpc.status_pb2 import Status
from structlog.testing import capture_logs

from services.chassis.errors import NotFound, Overloaded
from services.chassis.grpc_boundary import Context
from services.chassis.status import error_of_call
from tests.chassis.byte_service import call_link, call_stream, call_unary, channel_to, channel_with_write_timeout

# More than gRPC buffers for a reader that takes nothing.
PIECE = b"x" * 1_000_000


class Watched:
    """A streaming method whose end the test can see."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()
        self.written = 0

    async def waits(self, request: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        """Writes once, then waits for ever."""
        try:
            yield b"first"
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def floods(self, request: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        """Writes without end."""
        try:
            while True:
                yield PIECE
                self.written += 1
                self.begun.set()
        finally:
            self.ended.set()

    async def blocked(self) -> None:
        """Wait until writing stands still."""
        before = -1
        while before != self.written:
            before = self.written
            await asyncio.sleep(0.2)


def streaming(method: Any) -> dict[str, Any]:
    """A service with this streaming method."""
    return {"Stream": grpc.unary_stream_rpc_method_handler(method)}


def unary(method: Any) -> dict[str, Any]:
    """A service with this unary method."""
    return {"Unary": grpc.unary_unary_rpc_method_handler(method)}


async def failure_of(call: Any) -> grpc.aio.AioRpcError:
    """The error that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        if isinstance(call, grpc.aio.UnaryUnaryCall):
            await call
        else:
            async for _ in call:
                pass
    return failure.value


async def test_client_cancel_closes_a_waiting_generator() -> None:
    """Within 1 s of its client's cancel a generator that waits has run its finally, and nothing is logged as failed."""
    watched = Watched()
    with capture_logs() as logs:
        async with channel_to(streaming(watched.waits)) as channel:
            call = call_stream(channel)
            assert await call.read() == b"first"
            await watched.begun.wait()
            call.cancel()
            await asyncio.wait_for(watched.ended.wait(), 1.0)
            await asyncio.sleep(0.05)
    assert logs == []


async def test_client_cancel_closes_a_blocked_generator() -> None:
    """So has one that is blocked because its reader takes nothing."""
    watched = Watched()
    with capture_logs() as logs:
        async with channel_to(streaming(watched.floods)) as channel:
            call = call_stream(channel)
            await watched.begun.wait()
            await watched.blocked()
            assert not watched.ended.is_set()
            call.cancel()
            await asyncio.wait_for(watched.ended.wait(), 1.0)
            await asyncio.sleep(0.05)
    assert logs == []


@pytest.mark.parametrize("method", ["waits", "floods"])
async def test_deadline_closes_the_generator(method: str) -> None:
    """When a call's deadline passes, its generator is closed within 1 s, waiting or blocked."""
    watched = Watched()
    with capture_logs() as logs:
        async with channel_to(streaming(getattr(watched, method))) as channel:
            call = call_stream(channel, timeout=0.6)
            await watched.begun.wait()
            assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await asyncio.wait_for(watched.ended.wait(), 1.0)
            await asyncio.sleep(0.05)
    assert logs == []


async def test_vanished_client_closes_the_generator() -> None:
    """A client whose connection closes has its generators closed within 1 s."""
    watched = Watched()
    async with channel_to(streaming(watched.waits)) as channel:
        call = call_stream(channel)
        await call.read()
        await channel.close()
        await asyncio.wait_for(watched.ended.wait(), 1.0)


async def test_reader_that_takes_nothing_has_its_call_ended() -> None:
    """After the write timeout the generator is closed, one line says so, and a client that reads on is told why."""
    watched = Watched()
    with capture_logs() as logs:
        async with channel_with_write_timeout(streaming(watched.floods), 0.3) as channel:
            call = call_stream(channel)
            await watched.begun.wait()
            await asyncio.wait_for(watched.ended.wait(), 5.0)
            failure = await asyncio.wait_for(failure_of(call), 5.0)
    assert failure.code() is grpc.StatusCode.UNAVAILABLE
    assert "took nothing for 0.3 s" in (failure.details() or "")
    assert [line["event"] for line in logs] == ["call ended: its reader takes nothing"]


async def test_reader_that_never_comes_back_leaves_nothing() -> None:
    """A reader that takes nothing for ever holds its call's end up only until it leaves."""
    watched = Watched()
    before = asyncio.all_tasks()
    async with channel_with_write_timeout(streaming(watched.floods), 0.1) as channel:
        call = call_stream(channel)
        await asyncio.wait_for(watched.ended.wait(), 5.0)
        call.cancel()
    del call
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before == set()


async def test_slow_but_steady_reader_is_served() -> None:
    """The write timeout counts from the last message that was taken, not from the call's start."""

    async def thirty(request: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        for _ in range(30):
            yield PIECE

    async with channel_with_write_timeout(streaming(thirty), 0.5) as channel:
        call = call_stream(channel)
        taken = 0
        while await call.read() is not grpc.aio.EOF:
            taken += 1
            await asyncio.sleep(0.04)
        assert taken == 30


async def test_unknown_error_is_logged_once_and_kept_inside() -> None:
    """An unknown exception is INTERNAL with a fixed text for the caller, and one traceback in the log."""

    async def before(request: bytes, context: Context) -> bytes:
        raise RuntimeError("the secret")

    async def between(request: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        yield b"1"
        raise RuntimeError("the secret")

    with capture_logs() as logs:
        async with channel_to(unary(before) | streaming(between)) as channel:
            for call in (
                call_unary(channel),
                call_stream(channel),
            ):
                failure = await failure_of(call)
                assert failure.code() is grpc.StatusCode.INTERNAL
                assert "secret" not in repr(failure) and "internal error" in (failure.details() or "")
    assert [(line["event"], line["exc_info"]) for line in logs] == [("call failed", True)] * 2


async def test_service_errors_bring_their_details() -> None:
    """A service's error reaches the caller with code, text and details, before and between messages, unlogged."""

    async def before(request: bytes, context: Context) -> bytes:
        raise NotFound("no model 'x'", param="model", reason="MODEL_NOT_FOUND")

    async def between(request: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        yield b"1"
        raise Overloaded("full", retry_after=3.0)

    with capture_logs() as logs:
        async with channel_to(unary(before) | streaming(between)) as channel:
            failure = await failure_of(call_unary(channel))
            assert failure.code() is grpc.StatusCode.NOT_FOUND
            error = error_of_call(failure)
            assert (error.message, error.param, error.reason) == ("no model 'x'", "model", "MODEL_NOT_FOUND")
            failure = await failure_of(call_stream(channel))
            assert failure.code() is grpc.StatusCode.UNAVAILABLE
            assert error_of_call(failure).retry_after == 3.0
    assert logs == []


async def test_huge_error_text_still_arrives() -> None:
    """An error that quotes a huge value reaches the caller under its own code."""

    async def quotes(request: bytes, context: Context) -> bytes:
        raise NotFound(f"model {'x' * 1_000_000} does not exist", param="model")

    async with channel_to(unary(quotes)) as channel:
        failure = await failure_of(call_unary(channel))
    assert failure.code() is grpc.StatusCode.NOT_FOUND


async def test_own_abort_is_left_alone() -> None:
    """A method that aborts by gRPC's own means is not taken for a failure."""

    async def aborts(request: bytes, context: Context) -> None:
        await context.abort(grpc.StatusCode.ABORTED, "busy")

    with capture_logs() as logs:
        async with channel_to(unary(aborts)) as channel:
            failure = await failure_of(call_unary(channel))
    assert (failure.code(), failure.details()) == (grpc.StatusCode.ABORTED, "busy")
    assert logs == []


async def test_no_tasks_are_left() -> None:
    """After cancelled, failed and finished calls no task remains."""
    watched = Watched()

    async def fails(request: bytes, context: Context) -> bytes:
        raise NotFound("no")

    before = asyncio.all_tasks()
    async with channel_to(streaming(watched.waits) | unary(fails)) as channel:
        for _ in range(20):
            call = call_stream(channel)
            await call.read()
            call.cancel()
            await failure_of(call_unary(channel))
        await asyncio.sleep(0.2)
        # The server's own two tasks and the channel's may live as long as they do.
        assert len(asyncio.all_tasks() - before) < 10
    del call
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before == set()


@pytest.mark.parametrize("method", ["Unary", "Stream", "Link"])
async def test_bytes_that_are_no_message_are_the_callers_fault(method: str) -> None:
    """Garbage is INVALID_ARGUMENT with its details on every kind of method, unlogged, and the next call is served."""

    async def unary_(request: Status, context: Context) -> bytes:
        return b"done"

    async def stream(request: Status, context: Context) -> AsyncGenerator[bytes, None]:
        yield b"done"

    async def link(requests: AsyncIterator[Status], context: Context) -> AsyncGenerator[bytes, None]:
        async for _ in requests:
            yield b"done"

    methods: dict[str, Any] = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary_, request_deserializer=Status.FromString),
        "Stream": grpc.unary_stream_rpc_method_handler(stream, request_deserializer=Status.FromString),
        "Link": grpc.stream_stream_rpc_method_handler(link, request_deserializer=Status.FromString),
    }
    calls: dict[str, Callable[[grpc.aio.Channel, bytes], Any]] = {
        "Unary": call_unary,
        "Stream": call_stream,
        "Link": lambda channel, request: call_link(channel, [request]),
    }
    with capture_logs() as logs:
        async with channel_to(methods) as channel:
            failure = await failure_of(calls[method](channel, b"\xff\xff\xff"))
            good = calls[method](channel, b"")
            assert (await good if method == "Unary" else [reply async for reply in good]) in (b"done", [b"done"])
    assert failure.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error_of_call(failure).reason == "INVALID_REQUEST"
    assert logs == []
