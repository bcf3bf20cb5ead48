"""The tokenizer tier keeps the contract, before the real engine tier over a scripted engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from services.tokenizer.__main__ import serve
from services.tokenizer.settings import TokenizerSettings
from tests.contracts.live_text import LiveText, live_text
from tests.contracts.text_contract import TextContract
from tests.e2e.service import free_ports
from tests.tokenizer.engine_fixtures import MODEL, running_engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def text(smollm2: Path) -> AsyncGenerator[LiveText, None]:
    """Both tiers, composed as their processes do it, for all tests of the contract."""
    (port,) = free_ports(1)
    async with running_engine(smollm2) as engine:
        settings = TokenizerSettings(engine=f"127.0.0.1:{engine.port}", port=port, metrics_port=0, drain_seconds=0.0)
        stopping = asyncio.Event()
        serving = asyncio.create_task(serve(settings, stopping))
        try:
            async with live_text(f"127.0.0.1:{port}", MODEL, engine.idle) as live:
                yield live
        finally:
            stopping.set()
            await serving


@pytest.mark.asyncio(loop_scope="module")
class TestTextTier(TextContract):
    pass
