"""The turns of sessions: their beginning, the leases that they hold, and how their ends are kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from services.chassis.errors import Conflict, InternalError, ServiceError, Unavailable
from services.frontend.running import Running
from services.frontend.sessions.expansion import Body, Expansion, Plan, expand
from services.frontend.sessions.port import LEASE_SECONDS, SessionStore
from services.frontend.sessions.recorder import Recorder
from services.frontend.sessions.session import Outcome
from services.frontend.sessions.sessions import Sessions
from services.frontend.sink import Sink, TellingSink

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Three chances within a lease.
_RENEW_SECONDS = LEASE_SECONDS / 3
# In one transaction, so that turns which begin or end do not wait long for it.
_RENEWED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A request's body that asks for a turn of a session: most of the conversation is still in the database."""

    body: Body


class Turns:
    """All turns of this process.

    Args:
        sessions: where they are kept.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._live: set[Recorder] = set()

    async def expanded(self, stored: StoredBody, owner: str, parse: Callable[[Expansion], T]) -> T:
        """Plan a turn and return what `parse` makes of it. Both run in a thread.

        Raises:
            ServiceError: see `expand`, and what `parse` raises.
        """
        session_id = stored.body.get("session_id")
        if isinstance(session_id, str):
            await self._sessions.settled(session_id)

        def plan(store: SessionStore) -> T:
            return parse(expand(store, owner, stored.body))

        return await self._sessions.call(plan)

    async def begin(self, plan: Plan, sink: TellingSink, start: Callable[[Sink], Running]) -> Running:
        """Keep what is new and start the generation of the answer.

        Args:
            start: starts the generation whose events go to the sink that it is given.

        Raises:
            ServiceError: see `SessionStore.begin_turn`, and what `start` raises; then nothing is kept.
        """
        await self._hold(plan)
        sink.members["session"] = plan.member
        recorder = Recorder(plan, sink, self._keep)
        try:
            recorder.run(start(recorder))
        except BaseException:
            recorder.over = True
            await asyncio.shield(self._take_back(plan))
            raise
        if not recorder.over:
            self._live.add(recorder)
        return recorder

    async def renew(self) -> None:
        """Hold the leases of all turns under way, until cancelled."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            live = list(self._live)
            for begin in range(0, len(live), _RENEWED_AT_ONCE):
                await self._renew(live[begin : begin + _RENEWED_AT_ONCE])

    async def _renew(self, recorders: list[Recorder]) -> None:
        asked_at = time.monotonic()
        held = [(recorder.plan.turn, recorder.snapshot()) for recorder in recorders if not recorder.over]
        try:
            lost = await self._sessions.call(lambda store: set(store.renew(held)))
        except ServiceError:
            self._lose_late(recorders)
            return
        for recorder in recorders:
            if recorder.plan.turn.holder not in lost:
                recorder.renewed = asked_at
            elif not recorder.over:
                recorder.lose(Conflict("the session was deleted, or taken over by another turn", reason="SESSION_LOST"))

    def _lose_late(self, recorders: list[Recorder]) -> None:
        for recorder in recorders:
            if not recorder.over and time.monotonic() - recorder.renewed > LEASE_SECONDS:
                recorder.lose(
                    Unavailable(
                        "the sessions' database fails, so that the answer cannot be kept", reason="SESSION_LOST"
                    )
                )

    async def _hold(self, plan: Plan) -> None:
        holding = self._sessions.call(lambda store: store.begin_turn(plan.owner, plan.turn))
        try:
            await asyncio.shield(holding)
        except asyncio.CancelledError:
            # Nobody will end what begins now.
            holding.add_done_callback(lambda held: None if held.exception() else self._take_back(plan))
            raise

    def _take_back(self, plan: Plan) -> asyncio.Future[None]:
        return self._noted(plan, self._sessions.call(lambda store: store.abandon_turn(plan.turn)))

    def _keep(self, recorder: Recorder, outcome: Outcome | None, tell: Callable[[Exception | None], None]) -> None:
        self._live.discard(recorder)
        plan, summary = recorder.plan, recorder.summary
        if outcome is None:
            keeping = self._take_back(plan)
        else:
            ended = outcome
            keeping = self._noted(plan, self._sessions.call(lambda store: store.finish_turn(plan.turn, ended, summary)))
        keeping.add_done_callback(lambda kept: tell(_failure_of(kept)))

    def _noted(self, plan: Plan, ending: asyncio.Future[None]) -> asyncio.Future[None]:
        self._sessions.note_ending(plan.turn.session_id, ending)
        return ending


def _failure_of(done: asyncio.Future[None]) -> Exception | None:
    failure = done.exception()
    if failure is None or isinstance(failure, ServiceError):
        return failure
    log.error("a turn's end was not kept", exc_info=failure)
    return InternalError()
