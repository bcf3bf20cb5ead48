"""Files that are read again while the process runs."""

from __future__ import annotations

import asyncio

from services.chassis.rereading import reread
from services.chassis.settings import SettingsError
from tests.chassis.waiting import until


async def test_what_is_wrong_is_told_once_until_it_changes() -> None:
    """The same error twice is told once, another one too, and that again after it was right in between."""
    versions = iter(["wrong", "wrong", "other", "", "other"])
    told: list[str] = []

    async def take_over() -> None:
        if version := next(versions, ""):
            raise SettingsError(version)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(reread(take_over, told.append))
        await until(lambda: len(told) == 3, 10)
        task.cancel()
    assert told == ["wrong", "other", "other"]
