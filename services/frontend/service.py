"""The composition root: builds everything, serves, and takes it down in order."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
from prometheus_client import CollectorRegistry
from starlette.routing import Route

from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.errors import Draining
from services.chassis.tls import client_tls, server_context
from services.frontend.api_keys import ApiKeys
from services.frontend.app import FrontendApp
from services.frontend.body import BodyReader
from services.frontend.chat_request import parse_chat_request
from services.frontend.completion_request import parse_completion_request
from services.frontend.generate_endpoint import GenerateEndpoint, Timing
from services.frontend.http_limits import HttpLimits
from services.frontend.http_server import HttpServer, listening_socket
from services.frontend.metrics import FrontendMetrics
from services.frontend.models_endpoint import ModelCard, ModelList
from services.frontend.openapi import OpenApiEndpoint
from services.frontend.operations import LiveEndpoint, MetricsEndpoint, Readiness, ReadyEndpoint
from services.frontend.settings import FrontendSettings
from services.frontend.shapes import ChatShape, CompletionShape
from services.frontend.static_page import static_files
from services.frontend.text_client import TextClient

log = structlog.get_logger(__name__)

# Time that streams get to send their error event when the drain time is over.
_LAST_WORDS_SECONDS = 1.0


async def serve(settings: FrontendSettings, stopping: asyncio.Event, on_listening: Callable[[int], None]) -> None:
    """Serve until `stopping` is set, then drain and return.

    Args:
        on_listening: gets the port once requests are taken.

    Raises:
        SettingsError: the port is taken, or a file of keys or certificates is wrong.
    """
    keys = None if settings.api_keys_file is None else ApiKeys(settings.api_keys_file)
    if keys is None and not _is_loopback(settings.host):
        log.warning(
            "no API keys: whoever reaches this address may use it; set OMNI_FRONTEND_API_KEYS_FILE", host=settings.host
        )
    tls = _tls_context(settings)
    text_tls = client_tls(settings.tokenizers_tls_ca, settings.tokenizers_tls_cert, settings.tokenizers_tls_key)
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening_socket(settings.host, settings.port))
        channels = {
            address: await stack.enter_async_context(open_channel(address, text_tls)) for address in settings.tokenizers
        }
        texts = TextClient(channels)
        drain = Drain(settings.max_requests, "requests")
        readiness = Readiness(texts)
        metrics = FrontendMetrics(CollectorRegistry())
        metrics.follow(lambda: texts.connected, lambda: texts.live)
        app = FrontendApp(_routes(settings, texts, drain, readiness, metrics), metrics, keys, _open_paths())
        server = HttpServer(app, _limits(settings), lambda: on_listening(listener.getsockname()[1]), tls)
        async with asyncio.TaskGroup() as group:
            lasting = [group.create_task(texts.run())]
            if keys is not None:
                lasting.append(group.create_task(keys.follow()))
            serving = group.create_task(server.serve(sockets=[listener]))
            await stopping.wait()
            readiness.begin_drain()
            if not await drain.drain(settings.drain_seconds):
                log.warning("drain time is over; ending what still runs", active=drain.active)
                texts.fail_all(Draining("this service is shutting down; try another one or again later"))
                await drain.drain(_LAST_WORDS_SECONDS)
            server.stop()
            await serving
            for task in lasting:
                task.cancel()


def _routes(
    settings: FrontendSettings, texts: TextClient, drain: Drain, readiness: Readiness, metrics: FrontendMetrics
) -> list[Route]:
    bodies = BodyReader(settings.body_limit_bytes, settings.body_budget_bytes, settings.body_timeout_s)
    timing = Timing(settings.request_timeout_s, settings.first_byte_s, settings.comment_interval_s)
    chat = GenerateEndpoint(parse_chat_request, ChatShape(), bodies, texts, drain, timing, metrics)
    completions = GenerateEndpoint(parse_completion_request, CompletionShape(), bodies, texts, drain, timing, metrics)
    return [
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/v1/models", ModelList(texts), methods=["GET"]),
        Route("/v1/models/{name:path}", ModelCard(texts), methods=["GET"]),
        Route("/health/live", LiveEndpoint(), methods=["GET"]),
        Route("/health/ready", ReadyEndpoint(readiness), methods=["GET"]),
        Route("/openapi.json", OpenApiEndpoint(asks_for_key=settings.api_keys_file is not None), methods=["GET"]),
        Route("/metrics", MetricsEndpoint(metrics.registry), methods=["GET"]),
        *(Route(path, file, methods=["GET"]) for path, file in static_files().items()),
    ]


def _open_paths() -> list[str]:
    # Probes have no keys; the page and the API's description are the same for all and hold nothing of anybody.
    # Metrics tell how much is asked, on a port that everyone reaches, so they want a key; scrapers can send one.
    return ["/health/live", "/health/ready", "/openapi.json", *static_files()]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls_context(settings: FrontendSettings) -> ssl.SSLContext | None:
    if settings.tls_cert is None and settings.tls_key is None:
        return None
    return server_context(settings.tls_cert, settings.tls_key)


def _limits(settings: FrontendSettings) -> HttpLimits:
    return HttpLimits(
        header_bytes=settings.header_limit_bytes,
        header_timeout=settings.header_timeout_s,
        write_timeout=settings.write_timeout_s,
        keep_alive=settings.keep_alive_s,
    )
