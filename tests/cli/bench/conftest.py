"""The load runs on uvloop, as the command does it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run the tests on the loop that the command runs on."""
    return {"uvloop": uvloop.new_event_loop}
