"""Health while the tiers are busy, measured from a process that does nothing else."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e import load_program
from tests.e2e.service import Service

SECONDS = 0.1
# A neighbour on the machine only ever adds to the time: the best of some rounds is the service's own.
ROUNDS = 4
PAUSE_SECONDS = 0.01


@contextmanager
def load(service: Service, kind: str) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps the service busy; it has begun."""
    program = [sys.executable, load_program.__file__, kind, service.url, service.model]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == load_program.READY
            yield process
        finally:
            process.terminate()


@contextmanager
def probes(service: Service) -> Iterator[dict[str, Callable[[], bool]]]:
    """One for each way to ask for health; it says whether the answer is good."""
    with ExitStack() as stack:
        address = urlsplit(service.url)
        assert address.hostname is not None

        def http_probe(path: str) -> Callable[[], bool]:
            connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)
            stack.callback(connection.close)

            def ask() -> bool:
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                return response.status == 200

            return ask

        def grpc_probe(target: str, name: str) -> Callable[[], bool]:
            channel = stack.enter_context(grpc.insecure_channel(target))
            check: Any = health_pb2_grpc.HealthStub(channel).Check  # type: ignore[attr-defined]  # set in its __init__
            request = health_pb2.HealthCheckRequest(service=name)
            return lambda: check(request, timeout=10).status == health_pb2.HealthCheckResponse.SERVING

        yield {
            "live": http_probe("/health/live"),
            "ready": http_probe("/health/ready"),
            "tokenizer": grpc_probe(service.tokenizer, "streamomni.text.v1.TextService"),
            "engine": grpc_probe(service.engine, "streamomni.engine.v1.EngineService"),
        }


def slowest(ask: dict[str, Callable[[], bool]], goes_on: Callable[[], bool]) -> dict[str, float]:
    """The longest time of each probe, in seconds, while something goes on."""
    longest = dict.fromkeys(ask, 0.0)
    while goes_on():
        for name, probe in ask.items():
            begin = time.monotonic()
            assert probe(), name
            longest[name] = max(longest[name], time.monotonic() - begin)
        time.sleep(PAUSE_SECONDS)
    assert all(longest.values())
    return longest


def best(rounds: list[dict[str, float]]) -> dict[str, float]:
    """For each probe the shortest of the rounds' longest times."""
    return {name: min(each[name] for each in rounds) for name in rounds[0]}


def test_health_while_64_streams_run(service: Service) -> None:
    """All tiers answer within 100 ms while 64 streams run through them."""
    rounds = []
    with load(service, "streams"), probes(service) as ask:
        for _ in range(ROUNDS):
            end = time.monotonic() + 1.5
            rounds.append(slowest(ask, lambda end=end: time.monotonic() < end))  # type: ignore[misc]
    assert max(best(rounds).values()) < SECONDS, rounds


def test_health_while_large_bodies_arrive(service: Service) -> None:
    """All tiers answer within 100 ms while 27 MB, which get 413, and three bodies of up to 19 MB arrive at once."""
    rounds = []
    with probes(service) as ask:
        for _ in range(ROUNDS):
            with load(service, "bodies") as process:
                rounds.append(slowest(ask, lambda process=process: process.poll() is None))  # type: ignore[misc]
            assert process.returncode == 0
    assert max(best(rounds).values()) < SECONDS, rounds
