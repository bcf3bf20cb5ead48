from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.mailbox import Mailbox


async def read(mailbox: Mailbox[int]) -> list[list[int]]:
    """All batches until the end."""
    return [batch async for batch in mailbox.batches()]


async def test_what_gathered_comes_as_one_batch() -> None:
    """The reader takes all that waits at once, and what comes while it works is the next batch."""
    mailbox = Mailbox[int](100)
    batches = []
    mailbox.put(1, 1)
    mailbox.put(2, 1)
    async for batch in mailbox.batches():
        batches.append(batch)
        if len(batches) == 1:
            mailbox.put(3, 1)
            mailbox.close()
    assert batches == [[1, 2], [3]]


async def test_full_mailbox_refuses() -> None:
    """An item beyond the limit is not taken, one that finds nothing waiting is, whatever its size."""
    mailbox = Mailbox[int](10)
    assert mailbox.put(1, 50)
    assert not mailbox.put(2, 1)
    mailbox.close()
    assert await read(mailbox) == [[1]]


async def test_limit_is_inclusive_and_counts_what_waits() -> None:
    """The limit itself fits, and a taken batch no longer counts."""
    mailbox = Mailbox[int](10)
    assert mailbox.put(1, 4) and mailbox.put(2, 6) and not mailbox.put(3, 1)
    batches = mailbox.batches()
    assert await anext(batches) == [1, 2]
    assert mailbox.put(4, 10)
    await batches.aclose()


async def test_error_comes_after_what_waits() -> None:
    """The reader gets what was put before, then the error that the mailbox was closed with."""
    mailbox = Mailbox[int](10)
    mailbox.put(1, 1)
    mailbox.close(ValueError("over"))
    batches = mailbox.batches()
    assert await anext(batches) == [1]
    with pytest.raises(ValueError, match="over"):
        await anext(batches)


async def test_only_the_first_close_counts() -> None:
    """A later close changes nothing, and items after it are dropped without complaint."""
    mailbox = Mailbox[int](10)
    mailbox.close()
    mailbox.close(ValueError("late"))
    assert mailbox.put(1, 1)
    assert await read(mailbox) == []


async def test_waiting_reader_is_woken() -> None:
    """A reader that found nothing gets the next item, and the end, when they come."""
    mailbox = Mailbox[int](10)
    reading = asyncio.create_task(read(mailbox))
    await asyncio.sleep(0.01)
    mailbox.put(1, 1)
    await asyncio.sleep(0.01)
    mailbox.close()
    assert await asyncio.wait_for(reading, 1.0) == [[1]]


async def test_item_is_taken_past_a_waiting_reader() -> None:
    """While the reader waits, items go to `take_now`; what that refuses, and what follows it, goes to the reader."""
    taken: list[int] = []
    open_ = True

    def take_now(item: int) -> bool:
        if open_:
            taken.append(item)
        return open_

    mailbox = Mailbox[int](10, take_now)
    mailbox.put(1, 1)
    assert taken == [], "nobody has read yet"
    reading = asyncio.create_task(read(mailbox))
    await asyncio.sleep(0.01)
    mailbox.put(2, 1)
    open_ = False
    mailbox.put(3, 1)
    open_ = True
    mailbox.put(4, 1)
    await asyncio.sleep(0.01)
    mailbox.put(5, 1)
    mailbox.close()
    assert await asyncio.wait_for(reading, 1.0) == [[1], [3, 4]]
    assert taken == [2, 5]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["", "reader runs", "reader blocks"])), max_size=30))
def test_order_is_kept_whoever_takes(steps: list[tuple[bool, str]]) -> None:
    """Items arrive in the order they were put, whether `take_now` or the reader took them, and none is lost."""
    asyncio.run(_put_and_arrive(steps))


async def _put_and_arrive(steps: list[tuple[bool, str]]) -> None:
    arrived: list[int] = []
    open_, unblocked = True, asyncio.Event()

    def take_now(item: int) -> bool:
        if open_:
            arrived.append(item)
        return open_

    mailbox = Mailbox[int](1000, take_now)

    async def reader() -> None:
        async for batch in mailbox.batches():
            await unblocked.wait()
            arrived.extend(batch)

    reading = asyncio.create_task(reader())
    for number, (takes, then) in enumerate(steps):
        open_ = takes
        mailbox.put(number, 1)
        if then == "reader runs":
            unblocked.set()
        elif then == "reader blocks":
            unblocked.clear()
        if then:
            for _ in range(3):
                await asyncio.sleep(0)
    unblocked.set()
    mailbox.close()
    await reading
    assert arrived == list(range(len(steps)))
