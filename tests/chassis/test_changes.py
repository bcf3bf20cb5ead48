from __future__ import annotations

import asyncio
import time

from services.chassis.changes import Changes


async def test_first_comes_at_once_then_each_change() -> None:
    """A watcher is told at once and once more after each change, not between."""
    changes = Changes()
    watcher = changes.each()
    await asyncio.wait_for(anext(watcher), 1.0)
    following = asyncio.ensure_future(anext(watcher))
    await asyncio.sleep(0.01)
    assert not following.done()
    changes.mark()
    await asyncio.wait_for(following, 1.0)
    await watcher.aclose()


async def test_change_during_the_watchers_work_is_not_lost() -> None:
    """What changes while the watcher looks at the last change is told next."""
    changes = Changes()
    watcher = changes.each()
    await anext(watcher)
    changes.mark()
    await asyncio.wait_for(anext(watcher), 1.0)
    await watcher.aclose()


async def test_changes_in_a_row_count_as_one() -> None:
    """Within the least time several changes are told once, at its end."""
    changes = Changes()
    watcher = changes.each(0.05)
    await anext(watcher)
    begin = time.monotonic()
    for _ in range(3):
        changes.mark()
    await asyncio.wait_for(anext(watcher), 1.0)
    assert time.monotonic() - begin >= 0.045
    following = asyncio.ensure_future(anext(watcher))
    await asyncio.sleep(0.1)
    assert not following.done()
    following.cancel()


async def test_all_watchers_are_told() -> None:
    """Each of several watchers is told of one change."""
    changes = Changes()
    watchers = [changes.each() for _ in range(3)]
    for watcher in watchers:
        await anext(watcher)
    changes.mark()
    for watcher in watchers:
        await asyncio.wait_for(anext(watcher), 1.0)
        await watcher.aclose()
