"""The sessions that a process serves: a store that blocks, behind threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from services.chassis.errors import NotFound, Unavailable
from services.frontend.sessions.database import CONNECTIONS, SEARCHES
from services.frontend.sessions.port import SessionStore

P = ParamSpec("P")
T = TypeVar("T")

_SWEEP_SECONDS = 30.0


class Sessions:
    """A store whose calls leave the event loop free.

    Args:
        store: None where no sessions are kept.
    """

    def __init__(self, store: SessionStore | None) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(CONNECTIONS - SEARCHES, thread_name_prefix="sessions")
        self._searching = ThreadPoolExecutor(SEARCHES, thread_name_prefix="sessions-search")
        # Ends of turns that are being kept, by session.
        self._ending: dict[str, asyncio.Future[None]] = {}

    def call(
        self, use: Callable[Concatenate[SessionStore, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Use the store in a thread. What was begun goes on even where nobody waits for it any more.

        Raises:
            NotFound: no sessions are kept here.
            ServiceError: as the store does.
        """
        return self._run(self._threads, lambda store: use(store, *args, **kwargs))

    def search(self, use: Callable[[SessionStore], T]) -> asyncio.Future[T]:
        """Use the store as `call` does, for what may look through all texts of an owner. Turns do not wait for it."""
        return self._run(self._searching, use)

    def _run(self, threads: ThreadPoolExecutor, use: Callable[[SessionStore], T]) -> asyncio.Future[T]:
        store = self._store
        if store is None:
            raise NotFound(
                "this service keeps no sessions; set OMNI_FRONTEND_STATE_DIR or OMNI_FRONTEND_SESSIONS_URL",
                reason="SESSIONS_DISABLED",
            )
        return asyncio.get_running_loop().run_in_executor(threads, use, store)

    def note_ending(self, session_id: str, ending: asyncio.Future[None]) -> None:
        """Let `settled` wait for the end of a turn of this process."""
        self._ending[session_id] = ending

        def forget(ended: asyncio.Future[None]) -> None:
            if self._ending.get(session_id) is ended:
                del self._ending[session_id]

        ending.add_done_callback(forget)

    async def settled(self, session_id: str) -> None:
        """Wait until the end of a turn that is over is kept, so that whoever cancelled it may go on at once."""
        if (ending := self._ending.get(session_id)) is not None:
            await asyncio.wait([ending])

    async def sweep(self) -> None:
        """Delete sessions that have expired, until cancelled."""
        while self._store is not None:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                while await self.call(lambda store: store.expire()):
                    pass
            except Unavailable:
                # The log has told the cause, and the next sweep finds the same sessions.
                continue

    async def close(self) -> None:
        """Wait until all is kept, and give the database back."""
        await asyncio.to_thread(self._searching.shutdown, cancel_futures=True)
        await asyncio.to_thread(self._threads.shutdown)
        if self._store is not None:
            await asyncio.to_thread(self._store.close)
