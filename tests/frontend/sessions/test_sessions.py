"""Threads before the store of sessions."""

from __future__ import annotations

import asyncio
import threading

from services.frontend.sessions.database import CONNECTIONS
from services.frontend.sessions.sessions import Sessions
from tests.frontend.sessions.conftest import OpenStore
from tests.frontend.sessions.examples import OWNER, session


async def test_turns_do_not_wait_for_searches(open_store: OpenStore) -> None:
    """However many searches take long, other uses of the store are served at once, and all searches in the end."""
    sessions = Sessions(open_store())
    go_on = threading.Event()
    searches = [sessions.search(lambda _store: go_on.wait(30)) for _ in range(2 * CONNECTIONS)]
    made = session()
    try:
        async with asyncio.timeout(5):
            await sessions.call(lambda store: store.create(made))
            found = await sessions.call(lambda store: store.get(OWNER, made.id))
        assert found.id == made.id
        assert not any(search.done() for search in searches)
    finally:
        go_on.set()
    assert await asyncio.gather(*searches) == [True] * len(searches)
    await sessions.close()
