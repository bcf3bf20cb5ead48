"""Clients that people use, each against the running service as its users run it: all that each of them offers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.chassis.errors import Overloaded, RateLimited
from services.cli.models import models_directory
from tests.e2e.faulty_proxy import DROPPED, FaultyProxy, answer_of, faulty_proxy
from tests.e2e.peer import PeerAnswer
from tests.e2e.service import Service, wait_until
from tests.e2e.smollm2.clients.capabilities import CAPABILITIES, CLIENTS, ERROR_KINDS, NOT_OFFERED, offering
from tests.e2e.smollm2.clients.installed import ClientProgram, javascript_command, python_command, start

QUESTION = "What is the capital of France?"
CALLS: tuple[dict[str, Any], ...] = ({"city": "Paris"}, {"city": "Berlin"})
# Longer than OpenAI's SDKs wait by themselves before their first and second retry, and shorter than the Vercel AI SDK.
RETRY_AFTER_S = (0.8, 1.3)
NOT_OBEYED_S = (1.9, 3.9)


@dataclass(frozen=True)
class Client:
    """A client's running program, and the proxy that it uses where faults are tested."""

    name: str
    program: ClientProgram
    proxy: FaultyProxy

    def run(self, scenario: str) -> dict[str, Any]:
        """Run a scenario."""
        return self.program.run(scenario)


@pytest.fixture(scope="module")
def client(
    request: pytest.FixtureRequest, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """The client that the test is about."""
    name: str = request.param
    cache = models_directory(os.environ).parent / "test-clients"
    language, _, package = name.partition("-")
    command = python_command(package, cache) if language == "python" else javascript_command(package, cache)
    log_file: Path = tmp_path_factory.mktemp("client") / "log.txt"
    with faulty_proxy(service.url) as proxy:
        program = start([*command, service.url, service.model, proxy.url], log_file)
        try:
            yield Client(name, program, proxy)
        finally:
            program.end()


def of_each(capability: str) -> pytest.MarkDecorator:
    """Run a test with every client that offers a capability."""
    return pytest.mark.parametrize("client", offering(capability), indirect=True)


@pytest.mark.parametrize("client", CLIENTS, indirect=True)
def test_all_that_it_offers_is_tested(client: Client) -> None:
    """The client's program has a scenario of each capability, but of those that the client is known not to offer."""
    missing = {capability for name, capability in NOT_OFFERED if name == client.name}
    assert set(client.run("")["names"]) == set(CAPABILITIES) - missing


@of_each("chat")
def test_chat(client: Client, vllm_answers: dict[str, PeerAnswer]) -> None:
    """The client shows the model's answer to the letter, and the usage and finish reason that it knows of."""
    answer, expected = client.run("chat"), vllm_answers[QUESTION]
    assert answer["text"] == expected.text
    assert answer.get("finish_reason", expected.finish_reason) == expected.finish_reason
    assert answer.get("completion_tokens", len(expected.token_ids)) == len(expected.token_ids)


@of_each("stream")
def test_stream(client: Client, vllm_answers: dict[str, PeerAnswer]) -> None:
    """The client gets the same answer in pieces, and the usage at the end where it asks for it."""
    answer, expected = client.run("stream"), vllm_answers[QUESTION]
    assert "".join(answer["pieces"]) == expected.text
    assert sum(1 for piece in answer["pieces"] if piece) > 3
    assert answer.get("completion_tokens", len(expected.token_ids)) == len(expected.token_ids)


@of_each("error")
def test_unknown_model(client: Client) -> None:
    """The client makes its error of a model that there is not, with the service's reason in it."""
    error = client.run("error")
    assert (error["status"], error["kind"]) == (404, ERROR_KINDS[client.name]["error"])
    assert "gpt-unknown" in error["message"]


@of_each("invalid")
def test_wrong_request(client: Client) -> None:
    """The client makes its error of a request that is wrong, with the service's reason in it."""
    error = client.run("invalid")
    assert (error["status"], error["kind"]) == (400, ERROR_KINDS[client.name]["invalid"])
    assert "8192" in error["message"], "the context's length, of which more was asked for"


@of_each("leave")
def test_leaving_a_stream(client: Client, service: Service) -> None:
    """A stream that the client leaves frees the engine within a second, while the client lives on."""
    wait_until(service.is_idle, 10, "the engine is not idle before the test")
    assert len(client.run("leave")["pieces"]) >= 3
    wait_until(service.is_idle, 1, "the engine goes on")
    assert client.program.process.poll() is None


@of_each("structured")
def test_structured_output(client: Client) -> None:
    """What the client asks for as JSON of a schema comes as such, read and checked by the client itself."""
    check_place(client.run("structured")["value"])


@of_each("call")
def test_tool_call(client: Client) -> None:
    """The client gets a call of its tool with arguments that the tool's schema allows."""
    check_call(client, client.run("call"))


@of_each("call_stream")
def test_streamed_tool_call(client: Client) -> None:
    """The client puts the same together from a stream's pieces, which are several, and shows no text of the call."""
    answer = client.run("call_stream")
    check_call(client, answer)
    assert answer.get("pieces", 2) > 1
    assert answer.get("content", "") == ""


@of_each("round_trip")
def test_round_trip(client: Client) -> None:
    """The client gives a tool's result back under the id that the call came with, and gets an answer in words."""
    client.proxy.seen.clear()
    answer = client.run("round_trip")
    check_call(client, answer)
    assert answer["text"]
    first, second = (seen.body["messages"] for seen in client.proxy.seen)
    assert len(first) == 1
    (call,) = second[1]["tool_calls"]
    assert (second[2]["role"], second[2]["tool_call_id"]) == ("tool", call["id"])
    assert "Sunny, 25 degrees." in str(second[2]["content"])


@of_each("retry")
def test_retries_after_refusals(client: Client) -> None:
    """After an answer of ours that tells to try again, for want of room or for the caller's rate, the client waits as
    long as told and tries again, until it is served."""
    client.proxy.seen.clear()
    busy = Overloaded("busy", retry_after=RETRY_AFTER_S[0]), RateLimited("too many", retry_after=RETRY_AFTER_S[1])
    client.proxy.faults.extend(answer_of(error) for error in busy)
    assert client.run("retry")["text"]
    first, second, third = (seen.time for seen in client.proxy.seen)
    assert RETRY_AFTER_S[0] <= second - first < NOT_OBEYED_S[0]
    assert RETRY_AFTER_S[1] <= third - second < NOT_OBEYED_S[1]


@of_each("retry")
def test_retry_after_a_lost_connection(client: Client) -> None:
    """After a connection that ends without an answer the client tries again and is served."""
    client.proxy.seen.clear()
    client.proxy.faults.append(DROPPED)
    assert client.run("retry")["text"]
    assert len(client.proxy.seen) == 2


@of_each("refused")
def test_refusals_are_not_retried(client: Client) -> None:
    """A request that is wrong is sent once, though the client may try again."""
    client.proxy.seen.clear()
    assert client.run("refused")["status"] == 400
    assert len(client.proxy.seen) == 1


def check_place(value: dict[str, Any]) -> None:
    """See that a value is of the shape that was asked for."""
    assert value["name"] in ("Paris", "Berlin")
    assert isinstance(value["is_capital"], bool)


def check_call(client: Client, answer: dict[str, Any]) -> None:
    """See that a call names the tool and has arguments that it takes, and how the answer ended."""
    if client.name == "python-instructor":
        # Its tools are the shapes that it is asked for.
        check_place(answer["arguments"])
        return
    assert answer["name"] == "get_weather"
    assert answer["arguments"] in CALLS
    assert answer.get("finish_reason", "tool_calls") in ("tool_calls", "tool-calls")
