"""The real frontend on a real port, before a scripted text service on another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import uvloop

from services.frontend.service import serve
from services.frontend.settings import FrontendSettings
from tests.fakes.scripted_text_service import ScriptedTextService


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run the tests on the loop that the service runs on."""
    return {"uvloop": uvloop.new_event_loop}


Starter = Callable[..., Awaitable["Frontend"]]


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """Wait for a condition; fail when it does not come true in time."""
    async with asyncio.timeout(seconds):
        # What is waited for happens in another process or behind a socket: nothing would set an event.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@dataclass
class Frontend:
    """A running frontend. `stop` asks it to end, `ended` waits for that."""

    port: int
    client: httpx.AsyncClient
    stopping: asyncio.Event
    task: asyncio.Task[None]

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a bare connection."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ready(self) -> bool:
        """Whether it says that it is ready."""
        return (await self.client.get("/health/ready")).status_code == 200


async def until_ready(frontend: Frontend, ready: bool = True, seconds: float = 10) -> None:
    """Wait until it says that it is ready, or that it is not."""
    async with asyncio.timeout(seconds):
        while await frontend.ready() is not ready:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running_frontend(*tokenizers: int, **settings: Any) -> AsyncGenerator[Frontend, None]:
    """Run a frontend before text services at these ports."""
    listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stopping = asyncio.Event()
    addresses = tuple(f"127.0.0.1:{port}" for port in tokenizers)
    given = FrontendSettings(port=0, tokenizers=addresses, drain_seconds=settings.pop("drain_seconds", 0), **settings)
    task = asyncio.create_task(serve(given, stopping, listening.set_result))
    try:
        waits: list[asyncio.Future[Any]] = [task, listening]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        port = listening.result()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            yield Frontend(port, client, stopping, task)
    finally:
        stopping.set()
        await task


@pytest.fixture
async def service() -> AsyncIterator[ScriptedTextService]:
    """A scripted text service; `service.port` is where it serves."""
    scripted = ScriptedTextService()
    async with scripted.serve() as port:
        scripted.port = port
        yield scripted


@pytest.fixture
async def start(service: ScriptedTextService) -> AsyncIterator[Starter]:
    """Starts frontends, with settings, before the scripted service."""
    async with AsyncExitStack() as stack:

        async def start_frontend(**settings: Any) -> Frontend:
            frontend = await stack.enter_async_context(running_frontend(service.port, **settings))
            await until_ready(frontend)
            return frontend

        yield start_frontend


@pytest.fixture
async def frontend(start: Starter) -> Frontend:
    """A running frontend with default settings."""
    return await start()
