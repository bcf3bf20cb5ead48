"""Counting what is under way, so that a service ends when the last is done."""

from __future__ import annotations

import asyncio

from services.chassis.errors import Draining, Overloaded


class Drain:
    """Admission and drain of a service's units of work, such as generations.

    Args:
        limit: most units at once.
        unit: their name in error texts.
    """

    def __init__(self, limit: int, unit: str) -> None:
        self.limit = limit
        self._unit = unit
        self._active = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def active(self) -> int:
        """Units under way."""
        return self._active

    def enter(self, units: int = 1) -> None:
        """Take places; `leave` gives them back.

        Raises:
            Draining: the service ends.
            Overloaded: fewer places are free.
        """
        if self._draining:
            raise Draining("this service is shutting down; try another one or again later")
        if self._active + units > self.limit:
            raise Overloaded(f"{self._active} {self._unit} are under way and {self.limit} are allowed; try again later")
        self._active += units
        self._idle.clear()

    def leave(self, units: int = 1) -> None:
        """Give places back."""
        self._active -= units
        if self._active == 0:
            self._idle.set()

    async def drain(self, timeout: float) -> bool:
        """Refuse new units and wait for those under way, at most `timeout` seconds.

        Returns: whether all ended in time.
        """
        self._draining = True
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
