"""The scripted text service keeps the contract, so tests upon it speak of the real one."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest_asyncio

from tests.contracts.live_text import LiveText, live_text
from tests.contracts.text_contract import TextContract
from tests.fakes.scripted_text_service import ScriptedTextService


@pytest_asyncio.fixture
async def text() -> AsyncGenerator[LiveText, None]:
    """A scripted text service of its own for each test."""
    service = ScriptedTextService()
    async with service.serve() as port, live_text(f"127.0.0.1:{port}", "scripted", lambda: service.live == 0) as live:
        yield live


class TestScriptedTextService(TextContract):
    pass
