"""The tokenizer process: `python -m services.tokenizer`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

import grpc.aio
import structlog
from prometheus_client import CollectorRegistry

from services.chassis.changes import Changes
from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.grpc_server import Health, grpc_server
from services.chassis.logs import configure_logs
from services.chassis.metrics_server import metrics_server
from services.chassis.settings import SettingsError
from services.chassis.stop import run_until_stopped
from services.chassis.tls import client_tls
from services.tokenizer.classifiers.judging import Judging
from services.tokenizer.classifiers.port import load_classifier
from services.tokenizer.engine_link import EngineLink
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.filters.output_filters import OutputFilters
from services.tokenizer.generation import TextGenerator
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.models_client import ModelsClient
from services.tokenizer.output_parsers.selection import ParserNames
from services.tokenizer.servicer import TextServicer
from services.tokenizer.settings import TokenizerSettings
from streamomni.text.v1 import text_pb2_grpc

log = structlog.get_logger(__name__)

SERVICE_NAME = "streamomni.text.v1.TextService"


async def serve(settings: TokenizerSettings, stopping: asyncio.Event) -> None:
    """Serve until `stopping` is set and what runs has ended.

    Raises:
        SettingsError: a port is taken, or a TLS file is wrong.
    """
    tls = settings.server_tls()
    engine_tls = client_tls(settings.engine_tls_ca, settings.engine_tls_cert, settings.engine_tls_key)
    registry = CollectorRegistry()
    admission = Drain(settings.max_generations, "generations")
    metrics = TokenizerMetrics(registry, admission)
    filters = None
    if settings.filters_file is not None:
        filters = OutputFilters(settings.filters_file, FilterMetrics(registry))
    judging = None
    if settings.classifier is not None:
        classifier = load_classifier(settings.classifier, settings.classifier_file)
        judging = Judging(classifier, settings.classifier_seconds)

    async with (
        open_channel(settings.engine, engine_tls) as link_channel,
        open_channel(settings.engine, engine_tls) as channel,
    ):
        changes = Changes()
        link = EngineLink(settings.engine, link_channel, changes)
        parsers = ParserNames(settings.tool_parser, settings.reasoning_parser)
        models = ModelsClient(settings.engine, channel, changes, parsers, settings.allow_control_tokens)
        generator = TextGenerator(models.find, link.start, admission, metrics, filters, judging)

        def register(server: grpc.aio.Server) -> None:
            text_pb2_grpc.add_TextServiceServicer_to_server(TextServicer(generator, models), server)

        with metrics_server(registry, settings.host, settings.metrics_port) as metrics_port:
            async with grpc_server(settings.host, settings.port, [SERVICE_NAME], register, tls) as (port, health):
                log.info("tokenizer listens", port=port, metrics_port=metrics_port, engine=settings.engine)
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(link.run()),
                        group.create_task(models.run()),
                        group.create_task(_report_health(changes, models, link, health)),
                    ]
                    if filters is not None:
                        tasks.insert(0, group.create_task(filters.follow()))
                    if judging is not None:
                        tasks.insert(0, group.create_task(judging.run()))
                    await stopping.wait()
                    tasks[-1].cancel()
                    await health.set_serving(False)
                    if not await admission.drain(settings.drain_seconds):
                        log.warning("generations cancelled: drain time is over", live=admission.active)
                    for task in tasks:
                        task.cancel()
    log.info("tokenizer ended")


async def _report_health(changes: Changes, models: ModelsClient, link: EngineLink, health: Health) -> None:
    async with aclosing(changes.each()) as each:
        async for _ in each:
            await health.set_serving(models.ready and link.connected)


def main() -> int:
    """Run the process.

    Returns: its exit code; 2 for wrong settings.
    """
    try:
        settings = TokenizerSettings.load()
        configure_logs("tokenizer", settings.log_level)
        run_until_stopped(lambda stopping: serve(settings, stopping))
    except SettingsError as error:
        print(f"tokenizer: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
