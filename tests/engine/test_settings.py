from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from services.chassis.settings import SettingsError
from services.engine.settings import EngineSettings


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """An environment without the tier's variables; as it was, after each test."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("OMNI_ENGINE_"):
            del os.environ[name]
    yield
    os.environ.clear()
    os.environ.update(before)


def test_defaults() -> None:
    """A model is all that must be given; ports and address are those of the documentation."""
    os.environ["OMNI_ENGINE_MODEL"] = "/models/smollm2-135m-instruct"
    settings = EngineSettings.load()
    assert (settings.host, settings.port, settings.metrics_port) == ("127.0.0.1", 50051, 9101)
    assert settings.model_name == "smollm2-135m-instruct"
    assert settings.args == {}


@pytest.mark.parametrize(
    ("model", "served_name", "name"),
    [("org/model-7b", "", "model-7b"), ("/models/a/", "", "a"), ("org/model-7b", "mine", "mine")],
)
def test_served_name(model: str, served_name: str, name: str) -> None:
    """Requests select the model by the given name, or by the last part of its source."""
    os.environ.update(OMNI_ENGINE_MODEL=model, OMNI_ENGINE_SERVED_NAME=served_name)
    assert EngineSettings.load().model_name == name


def test_engine_arguments_keep_their_types() -> None:
    """vLLM's arguments pass as one JSON object, numbers and booleans as such."""
    os.environ.update(OMNI_ENGINE_MODEL="m", OMNI_ENGINE_ARGS='{"max_model_len": 2048, "enforce_eager": false}')
    assert EngineSettings.load().args == {"max_model_len": 2048, "enforce_eager": False}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("METRICS_PORT", "99999"),
        ("MAX_GENERATIONS", "0"),
        ("DRAIN_SECONDS", "-1"),
        ("DRAIN_SECONDS", "nan"),
        ("LOG_LEVEL", "LOUD"),
        ("ARGS", "{"),
        ("ARGS", "[1]"),
        ("MAX_GENERATION", "5"),
    ],
)
def test_wrong_values_are_told_by_name(name: str, value: str) -> None:
    """A value out of range, malformed, or of an unknown variable is refused in one line with the variable's name."""
    os.environ.update({"OMNI_ENGINE_MODEL": "m", f"OMNI_ENGINE_{name}": value})
    with pytest.raises(SettingsError, match=f"OMNI_ENGINE_{name}") as refusal:
        EngineSettings.load()
    assert "\n" not in str(refusal.value)
