"""Following files that change while the process runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.chassis.settings import SettingsError

_SECONDS = 1.0


async def reread(take_over: Callable[[], Awaitable[None]], refused: Callable[[str], None]) -> None:
    """Take over changes each second, until cancelled.

    Args:
        take_over: reads what has changed and puts it in place; raises SettingsError where it is wrong.
        refused: is told what is wrong, once as long as it stays the same.
    """
    told: str | None = None
    while True:
        await asyncio.sleep(_SECONDS)
        try:
            await take_over()
        except SettingsError as error:
            if str(error) != told:
                refused(str(error))
            told = str(error)
        else:
            told = None
