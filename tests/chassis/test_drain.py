from __future__ import annotations

import asyncio

import pytest

from services.chassis.drain import Drain
from services.chassis.errors import Draining, Overloaded


def test_places_are_limited_and_given_back() -> None:
    """As many units as allowed enter, the next is refused with both figures, and a place given back is free."""
    drain = Drain(3, "generations")
    drain.enter(2)
    drain.enter()
    with pytest.raises(Overloaded, match="3 generations are under way and 3 are allowed") as refusal:
        drain.enter()
    assert refusal.value.retry_after == 1.0
    drain.leave(2)
    assert drain.active == 1
    drain.enter(2)


def test_units_enter_together_or_not_at_all() -> None:
    """A refused entry takes no place."""
    drain = Drain(3, "generations")
    drain.enter(2)
    with pytest.raises(Overloaded):
        drain.enter(2)
    assert drain.active == 2


async def test_drain_waits_for_the_last() -> None:
    """A drain ends when the last unit leaves, and meanwhile refuses new ones."""
    drain = Drain(3, "generations")
    drain.enter(2)
    draining = asyncio.create_task(drain.drain(5.0))
    await asyncio.sleep(0)
    with pytest.raises(Draining):
        drain.enter()
    drain.leave()
    await asyncio.sleep(0.01)
    assert not draining.done()
    drain.leave()
    assert await asyncio.wait_for(draining, 1.0) is True


async def test_drain_gives_up_in_time() -> None:
    """A drain whose time is over says so."""
    drain = Drain(3, "generations")
    drain.enter()
    assert await drain.drain(0.02) is False


async def test_idle_service_drains_at_once() -> None:
    """Where nothing is under way a drain needs no time, and afterwards nothing enters."""
    drain = Drain(3, "generations")
    assert await drain.drain(0.5) is True
    with pytest.raises(Draining):
        drain.enter()
