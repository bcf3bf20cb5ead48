"""Keeping one tier up."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

import structlog

from services.cli.tier import Tier
from services.cli.tier_process import TierProcess, describe_exit, run_tier

log = structlog.get_logger(__name__)

# Of the tiers: wrong settings.
_WRONG_SETTINGS = 2


class TierFailed(Exception):
    """A tier ended before it was ever ready; starting it again would not help. The text is one line."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take, in seconds.

    Args:
        pauses: before the first, second, … restart; the last one serves for all further.
        healthy: a tier that served for this long begins with the first pause again.
        end: what a tier gets to end beyond its drain time.
        end_unready: what a tier that serves nothing yet gets to end.
    """

    pauses: tuple[float, ...] = (1.0, 5.0, 15.0)
    healthy: float = 60.0
    end: float = 10.0
    end_unready: float = 5.0


class SupervisedTier:
    """Starts a tier, and starts it again when it dies.

    Args:
        tier: what to run.
        stopping: once set, what ends is not started again.
        patience: see there.
    """

    def __init__(self, tier: Tier, stopping: asyncio.Event, patience: Patience) -> None:
        self.tier = tier
        self._stopping = stopping
        self._patience = patience
        self._end_asked = asyncio.Event()
        self._process: TierProcess | None = None
        self._ready = False
        self._ready_since = 0.0
        self._was_ever_ready = asyncio.Event()
        self._restarts = 0

    @property
    def ready(self) -> bool:
        """Whether it serves."""
        return self._ready

    async def until_first_ready(self) -> None:
        """Return once it has served for the first time."""
        await self._was_ever_ready.wait()

    async def run(self) -> None:
        """Keep the tier up until `end` is called and it has ended.

        Raises:
            TierFailed: it ended before it was ever ready.
        """
        while not self._stopping.is_set():
            async with run_tier(self.tier) as process:
                self._process = process
                code = await self._watch(process)
            self._process = None
            served_seconds = time.monotonic() - self._ready_since if self._ready else 0.0
            self._ready = False
            if not self._stopping.is_set():
                await self._recover(code, served_seconds)

    def end(self) -> None:
        """Ask the tier to end; when its time is over it is killed."""
        self._end_asked.set()

    def kill(self) -> None:
        """End the tier at once."""
        if self._process is not None:
            self._process.kill()

    async def _watch(self, process: TierProcess) -> int:
        async with asyncio.TaskGroup() as group:
            probing = group.create_task(self._note_when_ready())
            ending = group.create_task(self._end_when_asked(process))
            code = await process.wait()
            probing.cancel()
            ending.cancel()
        return code

    async def _note_when_ready(self) -> None:
        await self.tier.probe.until_ready()
        self._ready = True
        self._ready_since = time.monotonic()
        self._was_ever_ready.set()
        if self._restarts:
            log.info("tier serves again", tier=self.tier.name, restarts=self._restarts)

    async def _end_when_asked(self, process: TierProcess) -> None:
        await self._end_asked.wait()
        patience = self._patience
        seconds = self.tier.drain_seconds + patience.end if self._ready else patience.end_unready
        process.terminate()
        await asyncio.sleep(seconds)
        log.warning("tier killed: it did not end in time", tier=self.tier.name, seconds=seconds)
        process.kill()

    async def _recover(self, code: int, served_seconds: float) -> None:
        reason = describe_exit(code)
        if not self._was_ever_ready.is_set():
            fault = "is set up wrongly" if code == _WRONG_SETTINGS else "ended before it was ready"
            raise TierFailed(f"{self.tier.name} {fault} ({reason}); what it wrote above says why")
        if served_seconds >= self._patience.healthy:
            self._restarts = 0
        pauses = self._patience.pauses
        pause = pauses[min(self._restarts, len(pauses) - 1)]
        self._restarts += 1
        log.warning(
            "tier ended and is started again",
            tier=self.tier.name,
            reason=reason,
            restarts=self._restarts,
            pause_seconds=pause,
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._stopping.wait()
