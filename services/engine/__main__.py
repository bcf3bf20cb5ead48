"""The engine process: `python -m services.engine`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

import grpc.aio
import structlog
from prometheus_client import CollectorRegistry

from services.chassis.changes import Changes
from services.chassis.drain import Drain
from services.chassis.grpc_server import Health, grpc_server
from services.chassis.logs import configure_logs
from services.chassis.metrics_server import metrics_server
from services.chassis.settings import SettingsError
from services.chassis.stop import run_until_stopped
from services.engine.metrics import EngineMetrics
from services.engine.models import Model, Models
from services.engine.port import EngineDead, EngineLoader
from services.engine.servicer import EngineServicer
from services.engine.settings import EngineSettings
from services.engine.vllm_adapter.process import prepare_environment
from streamomni.engine.v1 import engine_pb2_grpc

log = structlog.get_logger(__name__)

SERVICE_NAME = "streamomni.engine.v1.EngineService"


async def serve(settings: EngineSettings, loader: EngineLoader, stopping: asyncio.Event) -> None:
    """Serve one model until `stopping` is set and what runs has ended.

    Raises:
        SettingsError: a port is taken, or a TLS file is wrong.
        EngineDead: the model cannot be loaded.
    """
    tls = settings.server_tls()
    registry = CollectorRegistry()
    changes = Changes()
    admission = Drain(settings.max_generations, "generations")
    metrics = EngineMetrics(registry).of_model(settings.model_name)
    model = Model(settings.model_name, loader, admission, metrics, changes)
    models = Models([model], changes)

    def register(server: grpc.aio.Server) -> None:
        engine_pb2_grpc.add_EngineServiceServicer_to_server(EngineServicer(models), server)

    with metrics_server(registry, settings.host, settings.metrics_port) as metrics_port:
        async with grpc_server(settings.host, settings.port, [SERVICE_NAME], register, tls) as (port, health):
            log.info("engine listens", port=port, metrics_port=metrics_port, model=settings.model_name)
            async with asyncio.TaskGroup() as group:
                running = group.create_task(model.run())
                reporting = group.create_task(_report_health(models, health))
                ended = group.create_task(stopping.wait())
                await asyncio.wait([running, ended], return_when=asyncio.FIRST_COMPLETED)
                reporting.cancel()
                await health.set_serving(False)
                models.begin_drain()
                if not running.done():
                    if not await admission.drain(settings.drain_seconds):
                        log.warning("generations cancelled: drain time is over", live=admission.active)
                    running.cancel()
                ended.cancel()
    log.info("engine ended")


async def _report_health(models: Models, health: Health) -> None:
    async with aclosing(models.watch()) as changes:
        async for _ in changes:
            await health.set_serving(models.ready)


def main() -> int:
    """Run the process.

    Returns: its exit code; 2 for wrong settings, 1 when the model cannot be loaded.
    """
    try:
        settings = EngineSettings.load()
        # Told before vLLM is imported, which takes seconds.
        settings.server_tls()
    except SettingsError as error:
        print(f"engine: {error}", file=sys.stderr)
        return 2
    configure_logs("engine", settings.log_level)
    prepare_environment()
    # Takes seconds, so wrong settings are told before; and vLLM reads its environment when imported.
    from services.engine.vllm_adapter.loader import VllmLoader

    loader = VllmLoader(settings.model, settings.args)
    exit_code = 0
    try:
        run_until_stopped(lambda stopping: serve(settings, loader, stopping))
    except* (SettingsError, EngineDead) as errors:
        print(f"engine: {errors.exceptions[0]}", file=sys.stderr)
        exit_code = 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
