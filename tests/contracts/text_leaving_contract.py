"""The part of the text service's contract that says how generations end before their time."""

from __future__ import annotations

import asyncio
import time

import pytest

from services.chassis.errors import DeadlineExceeded
from tests.contracts.live_text import LiveText
from tests.contracts.text_requests import asking, endless


class TextLeavingContract:
    async def test_a_cancel_silences_one_generation(self, text: LiveText) -> None:
        """Of a cancelled generation nothing more comes once the service has read the command, no end either; others go
        on. Cancelling it again, or one that has ended or never was, does no harm."""
        async with text.link() as link:
            cancelled, other = await link.start(1, endless(n=2)), await link.start(2, endless())
            await link.until(lambda: cancelled.entries and other.entries)
            await link.cancel(1)
            marker = await link.start(3, asking())
            await link.end_of(marker)
            seen, going_on = len(cancelled.entries), len(other.entries)
            for stream_id in (1, 3, 99):
                await link.cancel(stream_id)
            await link.until(lambda: len(other.entries) > going_on + 20)
            assert len(cancelled.entries) == seen
            assert not cancelled.over and not other.over

    async def test_a_cancel_right_behind_its_start(self, text: LiveText) -> None:
        """It ends what has hardly begun; the link serves on and nothing is left."""
        async with text.link() as link:
            records = []
            for stream_id in range(1, 20):
                records.append(await link.start(stream_id, endless()))
                await link.cancel(stream_id)
            last = await link.start(100, asking())
            await link.end_of(last)
            await text.until_idle(1)
            assert not any(record.over for record in records)

    @pytest.mark.parametrize("half", [False, True], ids=["cancelled", "half-closed"])
    async def test_closing_the_link_ends_what_it_started(self, text: LiveText, half: bool) -> None:
        """Within 1 s nothing is left of it, and the generations of another link go on meanwhile."""
        async with text.link() as other:
            going_on = await other.start(1, endless())
            async with text.link() as closing:
                records = [await closing.start(stream_id, endless()) for stream_id in range(8)]
                await closing.until(lambda: all(record.entries for record in records))
                if half:
                    await closing.call.done_writing()
                    async with asyncio.timeout(1):
                        await closing.reading
                else:
                    closing.call.cancel()
                seen = len(going_on.entries)
                await other.until(lambda: len(going_on.entries) > seen)
                assert not any(record.over for record in (going_on, *records))
                other.call.cancel()

    async def test_a_deadline_ends_one_generation(self, text: LiveText) -> None:
        """Its own time over, a generation fails with DEADLINE_EXCEEDED, on the link and as a call; others go on."""
        async with text.link() as link:
            other = await link.start(1, endless())
            begin = time.monotonic()
            late = await link.start(2, endless(deadline_ms=300, n=2))
            await link.end_of(late)
            assert 0.25 < time.monotonic() - begin < 1.3
            assert not other.over
        for record in (late, await text.generate(endless(deadline_ms=300))):
            assert type(record.error) is DeadlineExceeded
            assert record.entries and not record.finishes
        await text.until_idle(1)

    async def test_leaving_a_call_ends_its_generation(self, text: LiveText) -> None:
        """Within 1 s of the cancel of a call nothing is left of it."""
        call = text.stub.Generate(endless(n=2))
        async for response in call:
            if response.HasField("delta"):
                break
        call.cancel()
        await text.until_idle(1)
