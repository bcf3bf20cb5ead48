"""Clients that people use, each against the running service as its users run it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli.models import models_directory
from tests.e2e.peer import PeerAnswer
from tests.e2e.service import Service, wait_until
from tests.e2e.smollm2.clients.installed import (
    JAVASCRIPT_CLIENTS,
    PYTHON_CLIENTS,
    ClientProgram,
    javascript_command,
    python_command,
    start,
)

QUESTION = "What is the capital of France?"
CLIENTS = [("python", name) for name in PYTHON_CLIENTS] + [("javascript", name) for name in JAVASCRIPT_CLIENTS]
# instructor gives objects only, and leaves streams to the client below it.
STRUCTURED = [client for client in CLIENTS if client not in (("python", "llm"), ("python", "llama_index"))]
CHATTING = [client for client in CLIENTS if client != ("python", "instructor")]


@pytest.fixture(scope="module")
def program(
    request: pytest.FixtureRequest, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClientProgram]:
    """The running program of the client that the test is about."""
    language, name = request.param
    cache = models_directory(os.environ).parent / "test-clients"
    command = python_command(name, cache) if language == "python" else javascript_command(name, cache)
    log_file: Path = tmp_path_factory.mktemp("client") / "log.txt"
    running = start(command, service.url, service.model, log_file)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        print(log_file.read_text()[-4000:])


def told_apart(client: tuple[str, str]) -> str:
    """A client's name in a test's id."""
    return "-".join(client)


@pytest.mark.parametrize("program", CHATTING, ids=told_apart, indirect=True)
def test_chat(program: ClientProgram, vllm_answers: dict[str, PeerAnswer]) -> None:
    """The client shows the model's answer to the letter, and the usage and finish reason that it knows of."""
    answer, expected = program.run("chat"), vllm_answers[QUESTION]
    assert answer["text"] == expected.text
    assert answer.get("finish_reason", expected.finish_reason) == expected.finish_reason
    assert answer.get("completion_tokens", len(expected.token_ids)) == len(expected.token_ids)


@pytest.mark.parametrize("program", CHATTING, ids=told_apart, indirect=True)
def test_stream(program: ClientProgram, vllm_answers: dict[str, PeerAnswer]) -> None:
    """The client gets the same answer in pieces, and the usage at the end where it asks for it."""
    answer, expected = program.run("stream"), vllm_answers[QUESTION]
    assert "".join(answer["pieces"]) == expected.text
    assert sum(1 for piece in answer["pieces"] if piece) > 3
    assert answer.get("completion_tokens", len(expected.token_ids)) == len(expected.token_ids)


@pytest.mark.parametrize("program", CLIENTS, ids=told_apart, indirect=True)
def test_unknown_model(program: ClientProgram) -> None:
    """The client makes an error of a model that there is not, with the service's reason in it."""
    error = program.run("error")
    assert error["status"] == 404
    assert "gpt-unknown" in error["message"]


@pytest.mark.parametrize("program", CHATTING, ids=told_apart, indirect=True)
def test_leaving_a_stream(program: ClientProgram, service: Service) -> None:
    """A stream that the client leaves frees the engine within a second, while the client lives on."""
    wait_until(service.is_idle, 10, "the engine is not idle before the test")
    assert len(program.run("leave")["pieces"]) >= 3
    wait_until(service.is_idle, 1, "the engine goes on")
    assert program.process.poll() is None


@pytest.mark.parametrize("program", STRUCTURED, ids=told_apart, indirect=True)
def test_structured_output(program: ClientProgram) -> None:
    """What the client asks for as JSON of a schema comes as such, read and checked by the client itself."""
    value = program.run("structured")["value"]
    assert value["name"] in ("Paris", "Berlin")
    assert isinstance(value["is_capital"], bool)
