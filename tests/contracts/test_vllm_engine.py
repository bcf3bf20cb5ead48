"""vLLM keeps the port's contract."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from tokenizers import Tokenizer

from tests.contracts.contract_requests import PLACES
from tests.contracts.engine_contract import EngineContract
from tests.contracts.live_engine import LiveEngine, live_engine
from tests.contracts.structured_contract import StructuredContract
from tests.contracts.vllm_processes import vllm_processes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(model_directory: Path) -> AsyncGenerator[LiveEngine, None]:
    """One engine for all tests of the contract, with the tier's own arguments but for its size."""
    from services.engine.vllm_adapter.loader import VllmLoader

    arguments = {"max_model_len": 2048, "max_num_seqs": PLACES}
    async with live_engine(VllmLoader(str(model_directory), arguments)) as engine:
        yield engine
    assert vllm_processes() == {}


@pytest.fixture(scope="module")
def tokenizer(model_directory: Path) -> Tokenizer:
    """The model's tokenizer."""
    return Tokenizer.from_file(str(model_directory / "tokenizer.json"))


@pytest.mark.asyncio(loop_scope="module")
class TestVllmEngine(EngineContract, StructuredContract):
    pass
