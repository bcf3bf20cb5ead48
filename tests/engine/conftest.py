from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio

from tests.engine.engine_service import EngineService, engine_service


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncGenerator[EngineService, None]:
    """A ready engine service."""
    async with engine_service(tmp_path) as it:
        yield it
