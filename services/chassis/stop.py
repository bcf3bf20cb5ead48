"""Stopping on a signal: the first asks for an orderly end, the second forces one."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import structlog
import uvloop

log = structlog.get_logger(__name__)

FORCED_EXIT_CODE = 130


def run_until_stopped(serve: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run a service's main coroutine on uvloop until it returns.

    Args:
        serve: gets an event that is set by the first SIGINT or SIGTERM; it ends
            what runs and returns. A second signal ends the process at once.
    """

    async def main() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()

        def on_signal(number: signal.Signals) -> None:
            if stopping.is_set():
                log.warning("forced to end", signal=number.name)
                os._exit(FORCED_EXIT_CODE)
            log.info("stopping", signal=number.name)
            stopping.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal, number)
        await serve(stopping)

    # What importing made lives as long as the process: no collection need look at it again.
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
