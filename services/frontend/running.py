"""A generation's life within its request: it ends when the caller leaves, and at the latest with the request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from starlette.types import Receive

from services.chassis.errors import DeadlineExceeded
from services.frontend.disconnect import ClientGone, until_disconnect
from services.frontend.generations import Generations
from services.frontend.sink import Sink


async def run_generation(
    generation: Generations, sink: Sink, receive: Receive, delivering: Awaitable[None], timeout: float | None
) -> None:
    """Deliver a generation's answer and end the generation, however that ends.

    Args:
        sink: fails with `ClientGone` when the caller leaves, with
            `DeadlineExceeded` after `timeout` seconds, and with what `receive` raises.
        delivering: sends the answer that the sink takes in.
    """
    watching = asyncio.create_task(_watch(generation, sink, receive, timeout))
    try:
        await delivering
    finally:
        generation.cancel()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(generation: Generations, sink: Sink, receive: Receive, timeout: float | None) -> None:
    try:
        async with asyncio.timeout(timeout):
            await until_disconnect(receive)
        error: Exception = ClientGone()
    except TimeoutError:
        error = DeadlineExceeded(f"the answer took more than the {timeout:g} s that are allowed; ask for fewer tokens")
    except Exception as failure:  # noqa: BLE001 - the side that delivers raises it
        error = failure
    generation.cancel()
    sink.failed(error)
