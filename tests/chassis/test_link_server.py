from __future__ import annotations

import asyncio

import grpc
import grpc.aio
import pytest
from structlog.testing import capture_logs

from services.chassis.errors import InvalidRequest, Unavailable
from services.chassis.status import error_of_call
from tests.chassis.byte_service import call_link, channel_to
from tests.chassis.text_link import TextLink, TextOutbox


async def frames_of(outbox: TextOutbox) -> list[bytes]:
    """All frames until the outbox ends."""
    return [frame async for frame in outbox.frames()]


async def test_what_one_pass_adds_is_one_frame() -> None:
    """Texts that are added before the reader runs come as one frame."""
    outbox = TextOutbox()
    outbox.add("a")
    outbox.add("b")
    outbox.close()
    assert await frames_of(outbox) == [b"a,b"]


async def test_what_gathers_during_a_write_is_one_frame() -> None:
    """Texts that come while a frame is being written go out together next, and none is lost or doubled."""
    outbox = TextOutbox()
    frames = outbox.frames()
    outbox.add("a")
    assert await anext(frames) == b"a"
    for text in ("b", "c", "d"):
        outbox.add(text)
        await asyncio.sleep(0)
    assert await anext(frames) == b"b,c,d"
    pending = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0.01)
    assert not pending.done()
    outbox.add("e")
    assert await pending == b"e"


async def test_empty_texts_are_sent_too() -> None:
    """An addition without bytes still makes a frame."""
    outbox = TextOutbox()
    outbox.add("")
    outbox.add("")
    outbox.close()
    assert await frames_of(outbox) == [b","]


async def test_close_during_a_write_sends_the_rest() -> None:
    """What was added before the close, while a frame is written, still goes out; then it ends."""
    outbox = TextOutbox()
    frames = outbox.frames()
    outbox.add("a")
    await anext(frames)
    outbox.add("b")
    outbox.close()
    assert [frame async for frame in frames] == [b"b"]
    empty = TextOutbox()
    empty.close()
    assert await frames_of(empty) == []


@pytest.mark.parametrize("closed_first", [True, False])
async def test_overflow_wins_over_close(closed_first: bool) -> None:
    """Where close and overflow coincide the reader is told of the overflow, since it cannot have all frames."""
    outbox = TextOutbox(10)
    if closed_first:
        outbox.close()
    outbox.add("x" * 11)
    outbox.close()
    with pytest.raises(Unavailable, match="10 bytes behind"):
        await frames_of(outbox)


async def test_taken_frames_do_not_count() -> None:
    """The limit is on what waits, not on the sum of all frames."""
    outbox = TextOutbox(10)
    frames = outbox.frames()
    for _ in range(5):
        outbox.add("12345678")
        assert await anext(frames) == b"12345678"
    await frames.aclose()


async def test_link_stands_before_the_first_frame() -> None:
    """The client learns that the link stands before anything was sent either way."""
    link = TextLink()
    async with channel_to(link.methods) as channel:
        call = call_link(channel)
        await asyncio.wait_for(call.initial_metadata(), 1.0)
        await call.write(b"a")
        assert await call.read() == b"a"
        call.cancel()


async def test_one_pass_is_one_message_on_the_wire() -> None:
    """A hundred additions of one pass reach the client as one message."""

    def bursts(outbox: TextOutbox) -> None:
        for number in range(100):
            outbox.add(str(number))

    async with channel_to(TextLink(bursts=bursts).methods) as channel:
        call = call_link(channel)
        await call.write(b"do bursts")
        assert await call.read() == ",".join(map(str, range(100))).encode()
        call.cancel()


async def test_half_close_ends_the_link_in_order() -> None:
    """When the client closes its side, the waiting frames are sent and the call ends well."""
    link = TextLink()
    async with channel_to(link.methods) as channel:
        call = call_link(channel, [b"a", b"b"])
        got = b",".join([frame async for frame in call])
        assert got == b"a,b"
        assert await call.code() is grpc.StatusCode.OK
        assert link.ended.is_set()


async def test_cancel_ends_the_link() -> None:
    """When the client cancels or its connection closes, the serving side has ended within 1 s, without a log line."""
    link = TextLink()
    with capture_logs() as logs:
        async with channel_to(link.methods) as channel:
            for closes_connection in (False, True):
                call = call_link(channel)
                await call.write(b"a")
                assert await call.read() == b"a"
                assert not link.ended.is_set()
                if closes_connection:
                    await channel.close()
                else:
                    call.cancel()
                await asyncio.wait_for(link.ended.wait(), 1.0)
            await asyncio.sleep(0.05)
    assert logs == []


async def test_service_error_of_a_command_ends_the_link_under_its_code() -> None:
    """What a command raises ends the link: an error for callers under its own code, any other as INTERNAL, logged."""

    def refuses(outbox: TextOutbox) -> None:
        raise InvalidRequest("no such command", param="command")

    def breaks(outbox: TextOutbox) -> None:
        raise RuntimeError("the secret")

    link = TextLink(refuses=refuses, breaks=breaks)
    with capture_logs() as logs:
        async with channel_to(link.methods) as channel:
            for word, code in (
                ("refuses", grpc.StatusCode.INVALID_ARGUMENT),
                ("breaks", grpc.StatusCode.INTERNAL),
            ):
                call = call_link(channel)
                await call.write(f"do {word}".encode())
                with pytest.raises(grpc.aio.AioRpcError) as failure:
                    await asyncio.wait_for(call.read(), 2.0)
                assert failure.value.code() is code
                assert "secret" not in (failure.value.details() or "")
                await asyncio.wait_for(link.ended.wait(), 1.0)
    assert [line["event"] for line in logs] == ["call failed"]


async def test_overflow_ends_the_link_though_a_write_is_blocked() -> None:
    """A reader that takes nothing has its link ended as soon as the limit is passed, and reads why."""
    link = TextLink(2_000_000)
    async with channel_to(link.methods) as channel:
        call = call_link(channel)
        await call.write(b"a")
        added = 0
        async with asyncio.timeout(10.0):
            while not link.ended.is_set():
                if link.outboxes:
                    link.outboxes[0].add("x" * 500_000)
                    added += 1
                await asyncio.sleep(0.01)
        # gRPC itself buffers some megabytes first; then two wait, and one more is too much.
        assert added < 100
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            async with asyncio.timeout(5.0):
                while await call.read() is not grpc.aio.EOF:
                    pass
        error = error_of_call(failure.value)
        assert isinstance(error, Unavailable) and "behind" in error.message


async def test_no_tasks_are_left() -> None:
    """Links that were cancelled, half-closed or failed leave no task behind."""
    link = TextLink()
    before = asyncio.all_tasks()
    async with channel_to(link.methods) as channel:
        for _ in range(5):
            call = call_link(channel)
            await call.write(b"a")
            await call.read()
            call.cancel()
            call = call_link(channel, [b"a"])
            async for _frame in call:
                pass
    del call
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before == set()
