"""The running service's tokenizer keeps the text service's contract on real vLLM."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest_asyncio

from tests.contracts.live_text import LiveText, live_text
from tests.contracts.text_contract import TextContract
from tests.e2e.service import Service


@pytest_asyncio.fixture
async def text(service: Service) -> AsyncGenerator[LiveText, None]:
    """A client of the running tokenizer."""
    async with live_text(service.tokenizer, service.model, service.is_idle) as live:
        yield live


class TestRunningTextService(TextContract):
    pass
