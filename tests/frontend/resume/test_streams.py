"""What is kept of many streams, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from services.chassis.errors import NotFound, Unavailable
from services.frontend.direct_body import WriteNow
from services.frontend.resume.stream import STREAM_BYTES
from services.frontend.resume.streams import Streams

KEEP_SECONDS = 60
EVENT = b"data: " + b"x" * 1000 + b"\n\n"


def never(_: bytes) -> bool:
    """A connection that is never ready."""
    return False


class Connection:
    """A connection that takes what it is written, while it is ready."""

    def __init__(self) -> None:
        self.ready = True
        self.taken: list[bytes] = []

    @property
    def write_now(self) -> WriteNow:
        """The way past `send`."""

        def write(event: bytes) -> bool:
            if self.ready:
                self.taken.append(event)
            return self.ready

        return write


async def test_ended_streams_go_first() -> None:
    """Where all streams together take too much, those that are over go, the oldest first; those that are read, and
    those that run, stay."""
    streams = Streams(KEEP_SECONDS, budget_bytes=60_000)
    ended = [streams.open("") for _ in range(4)]
    for stream in ended:
        for _ in range(5):
            stream.put(EVENT, len(EVENT))
        stream.close()
    running = streams.open("")
    with ended[0].reading(0, never):
        for _ in range(30):
            running.put(EVENT, len(EVENT))
        assert streams.size_bytes <= 60_000
        assert streams.find(ended[0].id, "") is ended[0]
        assert streams.find(running.id, "") is running
        assert (running.log.first, running.log.last) == (1, 30)
        with pytest.raises(NotFound):
            streams.find(ended[1].id, "")
    streams.close()
    assert (streams.kept, streams.size_bytes) == (0, 0)


async def test_a_stream_that_grows_loses_its_own_oldest_events() -> None:
    """Where nothing else can go, the stream that grows loses its oldest events, and none of the others does."""
    streams = Streams(KEEP_SECONDS, budget_bytes=60_000)
    other, growing = streams.open(""), streams.open("")
    for _ in range(10):
        other.put(EVENT, len(EVENT))
    for _ in range(500):
        growing.put(EVENT, len(EVENT))
        assert streams.size_bytes <= 60_000
    assert (other.log.first, other.log.last) == (1, 10)
    assert 1 < growing.log.first < growing.log.last == 500
    streams.close()


async def test_events_are_written_past_a_reader_that_waits() -> None:
    """A reader that has all, and waits, has the next event written at once; what its connection does not take waits in
    the log, and nothing comes twice or out of order."""
    streams = Streams(KEEP_SECONDS, budget_bytes=60_000)
    stream, connection = streams.open(""), Connection()
    with stream.reading(0, connection.write_now) as reader:
        waiting = asyncio.create_task(reader.next())
        await asyncio.sleep(0)
        stream.put(b"data: 1\n\n", 9)
        stream.put(b"data: 2\n\n", 9)
        assert connection.taken == [b"id: 1\ndata: 1\n\n", b"id: 2\ndata: 2\n\n"]
        connection.ready = False
        stream.put(b"data: 3\n\n", 9)
        connection.ready = True
        stream.put(b"data: 4\n\n", 9)
        assert len(connection.taken) == 2
        assert await waiting == b"id: 3\ndata: 3\n\nid: 4\ndata: 4\n\n"
        # The reader still sends what it was given.
        stream.put(b"data: 5\n\n", 9)
        assert len(connection.taken) == 2
        assert await reader.next() == b"id: 5\ndata: 5\n\n"
        stream.close()
        assert await reader.next() == b""
    streams.close()


async def test_a_reader_that_falls_behind() -> None:
    """A reader that is so slow that events went before it read them is told so; the stream goes on."""
    streams = Streams(KEEP_SECONDS, budget_bytes=10 * STREAM_BYTES)
    stream = streams.open("")
    with stream.reading(0, never) as reader:
        stream.put(EVENT, len(EVENT))
        assert (await reader.next()).startswith(b"id: 1\n")
        while stream.log.first <= 2:
            stream.put(EVENT, len(EVENT))
        with pytest.raises(Unavailable) as failure:
            await reader.next()
        assert failure.value.reason == "SLOW_READER"
        assert not stream.ended
    streams.close()


async def test_closing_ends_all() -> None:
    """When the process ends, what runs is cancelled and nothing is left behind."""

    class Running:
        cancelled = 0

        def cancel(self) -> None:
            self.cancelled += 1

    streams, running, ends = Streams(KEEP_SECONDS, 60_000), Running(), []
    for number in range(3):
        streams.open("").run(running, lambda number=number: ends.append(number), 5)  # type: ignore[misc]
    streams.close()
    assert (running.cancelled, ends, streams.kept, streams.size_bytes) == (3, [0, 1, 2], 0, 0)
