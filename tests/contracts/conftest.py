from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from services.cli.models import ensure_default_model, models_directory
from services.engine.vllm_adapter.process import prepare_environment
from tests.contracts.contract_requests import END_TOKEN, SECOND_END_TOKEN
from tests.tiny_model import TINY_MODEL_NAME, make_tiny_model


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with two end tokens, as several public chat models have; vLLM may be imported from here on."""
    prepare_environment()
    models = models_directory(os.environ)
    tiny = make_tiny_model(models / TINY_MODEL_NAME, ensure_default_model(models, print))
    directory = tmp_path_factory.mktemp("model") / "two-ends"
    shutil.copytree(tiny, directory)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": [END_TOKEN, SECOND_END_TOKEN]}))
    return directory
