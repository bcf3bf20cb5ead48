"""An answer's delivery while its caller is there, and a generation that ends when the caller leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.types import Receive

from services.chassis.errors import DeadlineExceeded
from services.frontend.disconnect import ClientGone, until_disconnect
from services.frontend.sink import Sink


class Running(Protocol):
    """A generation under way."""

    def cancel(self) -> None:
        """End it; one that has ended is left alone. Afterwards its sink is told nothing more."""


async def run_generation(
    generation: Running, sink: Sink, receive: Receive, delivering: Awaitable[None], timeout: float | None
) -> None:
    """Deliver a generation's answer and end the generation, however that ends.

    Args:
        sink: fails with `ClientGone` when the caller leaves, with
            `DeadlineExceeded` after `timeout` seconds, and with what `receive` raises.
        delivering: sends the answer that the sink takes in.
    """

    def end(error: Exception) -> None:
        generation.cancel()
        sink.failed(error)

    try:
        await deliver(delivering, receive, end, timeout)
    finally:
        generation.cancel()


async def deliver(
    delivering: Awaitable[None], receive: Receive, end: Callable[[Exception], None], timeout: float | None = None
) -> None:
    """Deliver an answer to a caller who may leave.

    Args:
        end: makes `delivering` end with an error: `ClientGone` when the caller leaves, `DeadlineExceeded` after
            `timeout` seconds, or what `receive` raises.
    """
    watching = asyncio.create_task(_watch(receive, end, timeout))
    try:
        await delivering
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(receive: Receive, end: Callable[[Exception], None], timeout: float | None) -> None:
    try:
        async with asyncio.timeout(timeout):
            await until_disconnect(receive)
        error: Exception = ClientGone()
    except TimeoutError:
        error = DeadlineExceeded(f"the answer took more than the {timeout:g} s that are allowed; ask for fewer tokens")
    except Exception as failure:  # noqa: BLE001 - the side that delivers raises it
        error = failure
    end(error)
