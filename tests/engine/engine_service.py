"""The engine service on a scripted engine, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from prometheus_client import CollectorRegistry

from services.chassis.changes import Changes
from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.errors import ServiceError
from services.chassis.grpc_server import grpc_server
from services.chassis.status import error_of_call
from services.engine.metrics import EngineMetrics
from services.engine.models import Model, Models
from services.engine.port import Load
from services.engine.servicer import EngineServicer
from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, sampling_pb2
from tests.chassis.waiting import until
from tests.fakes.scripted_engine import ScriptedEngine, ScriptedLoader

SERVICE_NAME = "streamomni.engine.v1.EngineService"
TOKENIZER = b'{"model": "tiny"}'


def tokenizer_directory(path: Path) -> Path:
    """The directory with a tokenizer's files in it."""
    (path / "tokenizer.json").write_bytes(TOKENIZER)
    (path / "config.json").write_bytes(b"{}")
    return path


@dataclass
class EngineService:
    """What tests look at."""

    loader: ScriptedLoader
    model: Model
    models: Models
    admission: Drain
    registry: CollectorRegistry
    channel: grpc.aio.Channel
    stub: Any

    @property
    def engine(self) -> ScriptedEngine:
        """The engine loaded last."""
        return self.loader.engine

    def count(self, name: str, **labels: str) -> float:
        """A metric's value."""
        return self.registry.get_sample_value(name, {"model_name": "m", **labels}) or 0.0

    async def until_ready(self) -> None:
        """Wait until the model serves."""
        await until(lambda: self.model.ready)

    async def assert_idle(self) -> None:
        """Within 1 s all places and the engine are free."""
        idle = Load(0, 0, 0.0)
        await until(lambda: self.admission.active == 0 and self.model.status().load == idle, 1.0)
        assert self.count("vllm:num_requests_running") == self.count("vllm:num_requests_waiting") == 0


@asynccontextmanager
async def engine_service(
    path: Path, limit: int = 64, reload_seconds: Sequence[float] = (0.05,), **loader_fields: Any
) -> AsyncGenerator[EngineService, None]:
    """Serve a model named `m`; it is ready when the block begins."""
    loader_fields.setdefault("tick_seconds", 0.001)
    loader = ScriptedLoader(tokenizer_directory(path), **loader_fields)
    registry, changes = CollectorRegistry(), Changes()
    admission = Drain(limit, "generations")
    model = Model("m", loader, admission, EngineMetrics(registry).of_model("m"), changes, reload_seconds)
    models = Models([model], changes)

    def register(server: grpc.aio.Server) -> None:
        engine_pb2_grpc.add_EngineServiceServicer_to_server(EngineServicer(models), server)

    async with (
        grpc_server("127.0.0.1", 0, [SERVICE_NAME], register) as (port, _),
        open_channel(f"127.0.0.1:{port}") as channel,
        asyncio.TaskGroup() as group,
    ):
        running = group.create_task(model.run())
        stub: Any = engine_pb2_grpc.EngineServiceStub(channel)
        service = EngineService(loader, model, models, admission, registry, channel, stub)
        await service.until_ready()
        yield service
        running.cancel()


def generate_request(**fields: Any) -> engine_pb2.GenerateRequest:
    """A request of ten prompt tokens; fields of SamplingParams are given by their names."""
    names = {field.name for field in sampling_pb2.SamplingParams.DESCRIPTOR.fields}
    sampling = {name: fields.pop(name) for name in list(fields) if name in names}
    sampling.setdefault("ignore_eos", True)
    fields.setdefault("prompt_token_ids", range(10))
    return engine_pb2.GenerateRequest(sampling_params=sampling_pb2.SamplingParams(**sampling), **fields)


async def error_of_reading(call: Any) -> tuple[grpc.StatusCode, ServiceError]:
    """The code and the error that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        async with asyncio.timeout(5.0):
            if isinstance(call, grpc.aio.UnaryUnaryCall):
                await call
            else:
                while await call.read() is not grpc.aio.EOF:
                    pass
    return failure.value.code(), error_of_call(failure.value)
