"""vLLM keeps the port's contract."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from services.cli.models import ensure_default_model, models_directory
from services.engine.vllm_process import prepare_environment
from tests.contracts.engine_contract import END_TOKEN, PLACES, SECOND_END_TOKEN, EngineContract
from tests.contracts.live_engine import LiveEngine, live_engine
from tests.tiny_model import make_tiny_model

# The batch of one step is as large as the context, which vLLM asks for when prompts are not cut.
ARGUMENTS = {"max_model_len": 2048, "max_num_batched_tokens": 4096, "max_num_seqs": PLACES}


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with two end tokens, as several public chat models have."""
    models = models_directory(os.environ)
    tiny = make_tiny_model(models / "tiny-random-llama", ensure_default_model(models, print))
    directory = tmp_path_factory.mktemp("model") / "two-ends"
    shutil.copytree(tiny, directory)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": [END_TOKEN, SECOND_END_TOKEN]}))
    return directory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(model_directory: Path) -> AsyncGenerator[LiveEngine, None]:
    """One engine for all tests of the contract."""
    prepare_environment()
    from services.engine.vllm_engine import VllmLoader

    async with live_engine(VllmLoader(str(model_directory), ARGUMENTS)) as engine:
        yield engine


@pytest.mark.asyncio(loop_scope="module")
class TestVllmEngine(EngineContract):
    pass
