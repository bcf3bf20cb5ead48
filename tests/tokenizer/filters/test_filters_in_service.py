"""Filters and classifier as the tokenizer process has them, from its settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from services.chassis.settings import SettingsError
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2
from tests.tokenizer.conftest import SMOLLM2, DirectoryOf
from tests.tokenizer.engine_fixtures import EngineTier, running_engine
from tests.tokenizer.test_service import Service, running_service

FILTERS = '[[rule]]\nname = "swearing"\naction = "mask"\nwords = ["damned"]\n'
WEIGHTS = 'label = "rude"\naction = "stop"\nbias = -1.0\nthreshold = 0.5\n[weights]\nnuts = 2.0\n'
LINEAR = "services.tokenizer.classifiers.linear:LinearClassifier"


@pytest.fixture
async def engine(directory_of: DirectoryOf) -> AsyncIterator[EngineTier]:
    """The engine tier over a scripted engine."""
    async with running_engine(directory_of(SMOLLM2)) as running:
        yield running


async def said(engine: EngineTier, service: Service, ids: list[int]) -> tuple[str, text_pb2.Finished]:
    """What the service makes of these ids."""
    engine.lines.by_seed[7] = ids
    params = sampling_pb2.SamplingParams(max_tokens=len(ids), seed=7)
    request = text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="Hi"), sampling_params=params)
    events = [event async for event in service.stub.Generate(request)]
    (finished,) = [event.finished for event in events if event.HasField("finished")]
    return "".join(event.delta.text for event in events), finished


async def ids_of(service: Service, text: str) -> list[int]:
    """The ids of a text."""
    request = text_pb2.TokenizeRequest(text=text, add_special_tokens=False)
    return list((await service.stub.Tokenize(request)).token_ids)


async def test_both_from_settings(engine: EngineTier, tmp_path: Path) -> None:
    """The filters file and the classifier of the settings are at work, one behind the other, and counted."""
    (tmp_path / "filters.toml").write_text(FILTERS)
    (tmp_path / "weights.toml").write_text(WEIGHTS)
    settings = {"filters_file": tmp_path / "filters.toml", "classifier": LINEAR}
    async with running_service(engine.port, **settings, classifier_file=tmp_path / "weights.toml") as service:
        await service.until_health(1)
        ids = await ids_of(service, "A damned mess.")
        text, finished = await said(engine, service, ids)
        assert text == "A ██████ mess."
        assert finished.reason == sampling_pb2.FINISH_REASON_LENGTH
        ids = await ids_of(service, "Damned nuts.")
        text, finished = await said(engine, service, ids)
        assert text == "██████ nuts."
        assert finished.reason == sampling_pb2.FINISH_REASON_CONTENT_FILTER
        assert [match.rule for match in finished.filter_matches] == ["swearing", "rude"]
        async with httpx.AsyncClient() as client:
            metrics = (await client.get(f"http://127.0.0.1:{service.metrics_port}/metrics")).text
        assert 'streamomni:text_filter_matches_total{action="mask",rule="swearing"} 2.0' in metrics


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"filters_file": Path("/nowhere/filters.toml")}, "filters file /nowhere/filters.toml cannot be read"),
        ({"classifier": "no.such:Thing"}, "classifier no.such:Thing cannot be imported"),
        ({"classifier": LINEAR}, "has no file; set OMNI_TOKENIZER_CLASSIFIER_FILE"),
    ],
)
async def test_wrong_settings_end_the_start(engine: EngineTier, settings: dict[str, object], message: str) -> None:
    """A file or classifier that is wrong ends the process before it serves."""
    with pytest.raises(SettingsError, match=message):
        async with running_service(engine.port, **settings):
            pass
