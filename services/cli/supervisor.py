"""Running all tiers: started together, kept up, ended in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from services.cli.supervised_tier import Patience, SupervisedTier, TierFailed
from services.cli.tier import Tier

_PROGRESS_SECONDS = 5.0


class Supervisor:
    """Runs tiers. Make it and use it inside one event loop.

    Args:
        stages: tiers in the order of the data's way from the engine to the user; they end in the opposite order,
            those of one stage together.
        on_ready: is called once, when all tiers serve.
        on_progress: gets a short line every few seconds until then.
        patience: see there.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Tier]],
        on_ready: Callable[[], None],
        on_progress: Callable[[str], None],
        patience: Patience | None = None,
    ) -> None:
        self._stopping = asyncio.Event()
        self._on_ready = on_ready
        self._on_progress = on_progress
        patience = patience or Patience()
        self._stages = [[SupervisedTier(tier, self._stopping, patience) for tier in stage] for stage in stages]
        self._tiers = [tier for stage in self._stages for tier in stage]
        self._failure: TierFailed | None = None

    def stop(self) -> None:
        """Begin to end everything in order."""
        self._stopping.set()

    def kill(self) -> None:
        """End everything at once."""
        self._stopping.set()
        for tier in self._tiers:
            tier.kill()

    async def run(self) -> None:
        """Run the tiers until `stop` is called and all have ended.

        Raises:
            TierFailed: one ended before it was ever ready; the others were ended, too.
        """
        async with asyncio.TaskGroup() as group:
            stages = [[(tier, group.create_task(self._keep(tier))) for tier in stage] for stage in self._stages]
            announcing = group.create_task(self._announce())
            await self._stopping.wait()
            announcing.cancel()
            for stage in reversed(stages):
                for tier, _ in stage:
                    tier.end()
                await asyncio.wait([task for _, task in stage])
        if self._failure is not None:
            raise self._failure

    async def _keep(self, tier: SupervisedTier) -> None:
        try:
            await tier.run()
        except TierFailed as failure:
            self._failure = self._failure or failure
            self._stopping.set()

    async def _announce(self) -> None:
        async with asyncio.TaskGroup() as group:
            reporting = group.create_task(self._report())
            for tier in self._tiers:
                await tier.until_first_ready()
            reporting.cancel()
        self._on_ready()

    async def _report(self) -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(_PROGRESS_SECONDS)
            up = ", ".join(tier.tier.name for tier in self._tiers if tier.ready)
            waiting = ", ".join(tier.tier.name for tier in self._tiers if not tier.ready)
            seconds = time.monotonic() - started
            self._on_progress(f"starting, {seconds:.0f} s: {waiting} not ready yet{f'; {up} ready' if up else ''}")
