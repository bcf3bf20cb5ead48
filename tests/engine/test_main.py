"""The engine process as a whole, but for vLLM."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.chassis.channel import open_channel
from services.engine.__main__ import SERVICE_NAME, serve
from services.engine.port import EngineDead
from services.engine.settings import EngineSettings
from streamomni.engine.v1 import engine_pb2_grpc
from tests.architecture.source_tree import REPOSITORY
from tests.engine.engine_service import error_of_reading, generate_request, tokenizer_directory
from tests.fakes.scripted_engine import ScriptedLoader

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Process:
    """A running tier and its clients."""

    loader: ScriptedLoader
    stopping: asyncio.Event
    serving: asyncio.Task[None]
    channel: Any
    stub: Any
    health: Any
    metrics_url: str

    async def until_health(self, status: int, service: str = SERVICE_NAME, seconds: float = 5.0) -> None:
        """Wait until health reports this."""
        watch = self.health.Watch(health_pb2.HealthCheckRequest(service=service), wait_for_ready=True)
        async with asyncio.timeout(seconds):
            while (await watch.read()).status != status:
                pass
        watch.cancel()

    async def metric(self, name: str) -> float:
        """A sample of the metrics port."""
        async with httpx.AsyncClient() as client:
            text = (await client.get(self.metrics_url)).text
        (line,) = [line for line in text.splitlines() if line.startswith(f'{name}{{model_name="m"}}')]
        return float(line.split()[-1])


@asynccontextmanager
async def process(path: Path, drain_seconds: float = 5.0, **fields: Any) -> AsyncGenerator[Process, None]:
    """The tier, as `main` serves it, with a scripted engine."""
    loader = ScriptedLoader(tokenizer_directory(path), **{"tick_seconds": 0.002, **fields})
    port, metrics_port = free_port(), free_port()
    settings = EngineSettings(
        model="m", port=port, metrics_port=metrics_port, max_generations=4, drain_seconds=drain_seconds
    )
    stopping = asyncio.Event()
    serving = asyncio.create_task(serve(settings, loader, stopping))
    async with open_channel(f"127.0.0.1:{port}") as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        health = health_pb2_grpc.HealthStub(channel)
        try:
            yield Process(loader, stopping, serving, channel, stub, health, f"http://127.0.0.1:{metrics_port}/metrics")
        finally:
            stopping.set()
            async with asyncio.timeout(15.0):
                await asyncio.gather(serving, return_exceptions=True)


async def test_health_follows_the_model(tmp_path: Path) -> None:
    """NOT_SERVING while it loads, SERVING when it is warm, NOT_SERVING when its engine died, then SERVING again."""
    async with process(tmp_path, load_seconds=0.3) as it:
        await it.until_health(NOT_SERVING)
        for service in ("", SERVICE_NAME):
            await it.until_health(SERVING, service)
        it.loader.engine.die()
        # Watchers are told at most about once a second.
        await it.until_health(NOT_SERVING, seconds=1.5)
        await it.until_health(SERVING)


async def test_reflection_lists_the_service(tmp_path: Path) -> None:
    """A client can find the service and its methods without the protos."""
    async with process(tmp_path) as it:
        await it.until_health(SERVING)
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(it.channel)
        request = reflection_pb2.ServerReflectionRequest
        call = stub.ServerReflectionInfo(
            iter([request(list_services=""), request(file_containing_symbol=SERVICE_NAME)])
        )
        names = {service.name for service in (await call.read()).list_services_response.service}
        assert {SERVICE_NAME, "grpc.health.v1.Health"} <= names
        assert b"GenerateMany" in (await call.read()).file_descriptor_response.file_descriptor_proto[0]
        call.cancel()


async def test_metrics_port_shows_the_load(tmp_path: Path) -> None:
    """vLLM's names are served on the metrics port, with the load while it lasts and zero within 1 s of a cancel."""
    async with process(tmp_path) as it:
        await it.until_health(SERVING)
        call = it.stub.Generate(generate_request())
        await call.read()
        await asyncio.sleep(0.02)
        assert await it.metric("vllm:num_requests_running") == 1
        assert await it.metric("vllm:kv_cache_usage_perc") > 0
        assert await it.metric("vllm:prompt_tokens_total") >= 10
        call.cancel()
        await asyncio.sleep(0.9)
        for name in ("running", "waiting"):
            assert await it.metric(f"vllm:num_requests_{name}") == 0
        assert await it.metric("vllm:kv_cache_usage_perc") == 0


async def test_drain_lets_running_end_and_refuses_new(tmp_path: Path) -> None:
    """Asked to stop, the tier is NOT_SERVING, refuses new generations, ends running ones whole, and returns."""
    async with process(tmp_path) as it:
        await it.until_health(SERVING)
        running = it.stub.Generate(generate_request(max_tokens=150))
        await running.read()
        it.stopping.set()
        await it.until_health(NOT_SERVING)
        code, error = await error_of_reading(it.stub.Generate(generate_request()))
        assert (code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
        kinds = []
        while (response := await running.read()) is not grpc.aio.EOF:
            kinds.append(response.WhichOneof("event"))
        assert kinds == [*["delta"] * 150, "finished"]
        async with asyncio.timeout(5.0):
            await it.serving
        assert it.loader.engine.closed


async def test_drain_ends_in_time(tmp_path: Path) -> None:
    """What still runs when the drain time is over is told so, and the tier returns."""
    async with process(tmp_path, drain_seconds=0.2) as it:
        await it.until_health(SERVING)
        running = it.stub.Generate(generate_request())
        await running.read()
        it.stopping.set()
        code, error = await error_of_reading(running)
        assert (code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "ENGINE_FAILED")
        async with asyncio.timeout(5.0):
            await it.serving


@pytest.mark.parametrize("load_seconds", [60.0, 0.0])
async def test_stop_while_loading_or_idle(tmp_path: Path, load_seconds: float) -> None:
    """A tier that is still loading, or has nothing to do, ends at once when asked."""
    async with process(tmp_path, load_seconds=load_seconds) as it:
        await it.until_health(SERVING if load_seconds == 0 else NOT_SERVING)
        it.stopping.set()
        async with asyncio.timeout(2.0):
            await it.serving


async def test_model_that_cannot_be_loaded_ends_it(tmp_path: Path) -> None:
    """Where the first load fails the tier ends with the loader's error."""
    loader = ScriptedLoader(tokenizer_directory(tmp_path))
    loader.failing_loads = 1
    settings = EngineSettings(model="m", port=0, metrics_port=0)
    with pytest.raises(ExceptionGroup) as failure:
        async with asyncio.timeout(5.0):
            await serve(settings, loader, asyncio.Event())
    assert [type(error) for error in failure.value.exceptions] == [EngineDead]


async def test_nothing_is_left_after_serving(tmp_path: Path) -> None:
    """When the tier has returned no task of it remains and its ports are free."""
    before = asyncio.all_tasks()
    async with process(tmp_path) as it:
        await it.until_health(SERVING)
        call = it.stub.Generate(generate_request())
        await call.read()
        call.cancel()
    del call
    await asyncio.sleep(0.1)
    assert asyncio.all_tasks() - before == set()


def run_main(**variables: str) -> subprocess.CompletedProcess[str]:
    """Run the process with these settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OMNI_")}
    return subprocess.run(
        [sys.executable, "-m", "services.engine"],
        cwd=REPOSITORY,
        env={**clean, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "protos")]), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "OMNI_ENGINE_MODEL"),
        ({"OMNI_ENGINE_MODEL": "m", "OMNI_ENGINE_PROT": "1"}, "OMNI_ENGINE_PROT"),
        ({"OMNI_ENGINE_MODEL": "m", "OMNI_ENGINE_ARGS": "{"}, "OMNI_ENGINE_ARGS"),
    ],
)
def test_wrong_settings_end_the_process_in_one_line(variables: dict[str, str], told: str) -> None:
    """Wrong settings are told in one line, before vLLM is imported, with exit code 2."""
    done = run_main(**variables)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and told in done.stderr and done.stderr.startswith("engine: ")
