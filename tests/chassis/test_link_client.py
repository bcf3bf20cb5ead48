from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest

from services.chassis.channel import open_channel
from services.chassis.errors import ServiceError, Unavailable
from services.chassis.grpc_boundary import Context
from services.chassis.link_client import LinkClient
from tests.chassis.byte_service import call_link, serving
from tests.chassis.text_link import TextLink, TextOutbox
from tests.chassis.waiting import until


class Caller:
    """A link client and what it was told."""

    def __init__(self, port: int, channel: grpc.aio.Channel) -> None:
        self.frames: list[bytes] = []
        self.losses: list[ServiceError] = []
        self.opened = 0

        def open_call() -> Any:
            self.opened += 1
            return call_link(channel)

        self.link = LinkClient[bytes, bytes](
            f"127.0.0.1:{port}", open_call, self.frames.append, self.losses.append, batch=b"+".join
        )


@asynccontextmanager
async def calling(port: int) -> AsyncGenerator[Caller, None]:
    """A running link client."""
    async with open_channel(f"127.0.0.1:{port}") as channel:
        caller = Caller(port, channel)
        running = asyncio.create_task(caller.link.run())
        try:
            yield caller
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def test_commands_go_out_in_order_and_frames_come_in() -> None:
    """Every command arrives once and in order, and all that the peer sent back reaches the client."""
    link = TextLink()
    async with serving(link.methods) as port, calling(port) as caller:
        await until(lambda: caller.link.connected)
        for number in range(500):
            caller.link.send(b"%d" % number)
        await until(lambda: len(b",".join(caller.frames).split(b",")) == 500)
    assert link.commands == [str(number) for number in range(500)]
    assert b",".join(caller.frames).split(b",") == [b"%d" % number for number in range(500)]
    assert caller.losses == []


async def test_commands_that_wait_go_out_together() -> None:
    """Small commands given at one time are one message, in order, up to 256 KiB; larger ones go out alone."""
    link = TextLink()
    async with serving(link.methods) as port, calling(port) as caller:
        await until(lambda: caller.link.connected)
        for number in range(4):
            caller.link.send(b"%d" % number, 100 * 1024)
        caller.link.send(b"alone", 300 * 1024)
        caller.link.send(b"a", 1)
        caller.link.send(b"b", 1)
        await until(lambda: b",".join(caller.frames).endswith(b"b"))
    assert link.commands == ["0+1", "2+3", "alone", "a+b"]


async def test_nothing_is_taken_while_the_link_is_down() -> None:
    """Before the link stands a command is refused at once, naming the peer."""
    async with serving({}) as port:
        pass
    async with calling(port) as caller:
        await asyncio.sleep(0.05)
        assert not caller.link.connected
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
            caller.link.send(b"a")
    assert caller.losses == []


async def test_link_that_the_peer_closes_is_told_once_and_opened_again() -> None:
    """A peer that closes the link in good order is a loss as well; then the link stands again."""
    link = TextLink()
    async with serving(link.methods) as port, calling(port) as caller:
        await until(lambda: caller.link.connected)
        link.outboxes[0].close()
        await until(lambda: len(caller.losses) == 1)
        assert "closed the link" in caller.losses[0].message
        await until(lambda: caller.link.connected)
        caller.link.send(b"b")
        await until(lambda: caller.frames == [b"b"])
        assert len(caller.losses) == 1


async def test_link_stands_again_after_its_server_died() -> None:
    """The server's end is told once, meanwhile nothing is taken, and a new server at the same place gets the link."""
    first, second = TextLink(), TextLink()
    server = serving(first.methods)
    port = await server.__aenter__()
    async with calling(port) as caller:
        await until(lambda: caller.link.connected)
        await server.__aexit__(None, None, None)
        await until(lambda: not caller.link.connected)
        await until(lambda: len(caller.losses) == 1)
        assert isinstance(caller.losses[0], Unavailable)
        with pytest.raises(Unavailable):
            caller.link.send(b"a")
        await asyncio.sleep(0.5)
        async with serving(second.methods, port):
            await until(lambda: caller.link.connected, 5.0)
            caller.link.send(b"b")
            await until(lambda: caller.frames == [b"b"])
        assert second.commands == ["b"]
        await until(lambda: len(caller.losses) == 2)


async def test_commands_of_a_lost_link_are_not_sent_on_the_next() -> None:
    """What could not be written when the call died is forgotten: its owner was told that all streams are over."""
    received: list[bytes] = []
    calls = 0
    release = asyncio.Event()

    async def deaf_at_first(request_iterator: AsyncIterator[bytes], context: Context) -> None:
        nonlocal calls
        calls += 1
        await context.send_initial_metadata(())
        if calls == 1:
            await release.wait()
            await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        async for command in request_iterator:
            received.append(command[:5])

    async with (
        serving({"Link": grpc.stream_stream_rpc_method_handler(deaf_at_first)}) as port,
        calling(port) as caller,
    ):
        await until(lambda: caller.link.connected)
        for number in range(30):
            caller.link.send(b"old%02d" % number + b"x" * 1_000_000)
        await asyncio.sleep(0.3)
        release.set()
        await until(lambda: len(caller.losses) == 1)
        await until(lambda: caller.link.connected)
        caller.link.send(b"new00")
        await until(lambda: received != [])
        assert received == [b"new00"]


async def test_commands_sent_as_the_call_dies_are_covered_by_its_loss() -> None:
    """Each command that `send` took is either answered or followed by `on_lost`: none waits for ever."""
    link = TextLink(ends=lambda outbox: outbox.close())
    async with serving(link.methods) as port, calling(port) as caller:
        taken_after = 0
        for _ in range(5):
            await until(lambda: caller.link.connected)
            told = len(caller.losses) + 1
            caller.link.send(b"do ends")
            # Sends at every moment of the call's end.
            with suppress(Unavailable):
                while True:
                    caller.link.send(b"late")
                    taken_after += 1
                    await asyncio.sleep(0)
            await until(partial(_told, caller, told))
        assert taken_after > 0
        await until(lambda: caller.link.connected)
        before = len(link.commands)
        caller.link.send(b"last")
        await until(lambda: len(link.commands) > before)
        assert link.commands[before:] == ["last"]


def _told(caller: Caller, times: int) -> bool:
    return len(caller.losses) == times


async def test_refused_links_are_tried_again_in_silence() -> None:
    """A peer that refuses the call is tried again and again; there is nothing to lose, so nothing is told."""
    tries = 0

    async def refuses(request_iterator: Any, context: Context) -> None:
        nonlocal tries
        tries += 1
        await context.abort(grpc.StatusCode.UNAVAILABLE, "not now")

    async with serving({"Link": grpc.stream_stream_rpc_method_handler(refuses)}) as port, calling(port) as caller:
        await until(lambda: tries >= 2)
        assert not caller.link.connected
    assert caller.losses == []


async def test_overflow_at_the_peer_is_a_loss() -> None:
    """A link that its peer ends for lagging is told with the peer's words."""

    def floods(outbox: TextOutbox) -> None:
        outbox.add("x" * 2000)

    link = TextLink(1000, floods=floods)
    async with serving(link.methods) as port, calling(port) as caller:
        await until(lambda: caller.link.connected)
        caller.link.send(b"do floods")
        await until(lambda: len(caller.losses) == 1)
    assert "1000 bytes behind" in caller.losses[0].message


async def test_idle_link_stays() -> None:
    """A link without traffic stays the same call and works afterwards."""
    link = TextLink()
    async with serving(link.methods) as port, calling(port) as caller:
        await until(lambda: caller.link.connected)
        await asyncio.sleep(1.5)
        caller.link.send(b"a")
        await until(lambda: caller.frames == [b"a"])
        assert caller.opened == 1
    assert caller.losses == []


async def test_leaving_ends_the_call_and_its_tasks() -> None:
    """Cancelling `run` ends the call on the server within 1 s, tells nothing, and leaves no task."""
    link = TextLink()
    before = asyncio.all_tasks()
    async with serving(link.methods) as port:
        async with calling(port) as caller:
            await until(lambda: caller.link.connected)
            caller.link.send(b"a")
            await until(lambda: caller.frames == [b"a"])
        await asyncio.wait_for(link.ended.wait(), 1.0)
    await asyncio.sleep(0.05)
    assert asyncio.all_tasks() - before == set()
    assert caller.losses == []
