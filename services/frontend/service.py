"""The composition root: builds everything, serves, and takes it down in order."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute, Route, WebSocketRoute

from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.errors import Draining
from services.chassis.tls import client_tls, server_context
from services.frontend.api_keys import ApiKeys, RawHeaders
from services.frontend.app import FrontendApp
from services.frontend.body import BodyReader
from services.frontend.chat_request import ChatRequest, parse_chat_request
from services.frontend.completion_request import parse_completion_request
from services.frontend.generate_endpoint import GenerateEndpoint
from services.frontend.generating import Generating
from services.frontend.http_limits import HttpLimits
from services.frontend.http_server import HttpServer, listening_socket
from services.frontend.metrics import FrontendMetrics
from services.frontend.models_endpoint import ModelCard, ModelList
from services.frontend.openapi import OpenApiEndpoint
from services.frontend.operations import LiveEndpoint, MetricsEndpoint, Readiness, ReadyEndpoint
from services.frontend.presets.application import with_preset
from services.frontend.presets.endpoint import PresetCard, PresetList
from services.frontend.presets.library import Presets
from services.frontend.resume.endpoints import CancelEndpoint, ResumeEndpoint
from services.frontend.resume.streams import Streams
from services.frontend.sessions.endpoints import SessionApi
from services.frontend.sessions.opening import open_sessions
from services.frontend.sessions.sessions import Sessions
from services.frontend.sessions.turns import Turns
from services.frontend.settings import FrontendSettings
from services.frontend.shapes import ChatShape, CompletionShape
from services.frontend.static_page import static_files
from services.frontend.streaming import Timing
from services.frontend.text_client import TextClient
from services.frontend.websocket.connection import PATH as WEBSOCKET_PATH
from services.frontend.websocket.connection import Services
from services.frontend.websocket.endpoint import NoWebSocketEndpoint, WebSocketEndpoint
from services.frontend.websocket.protocol import WebSocketLimits

log = structlog.get_logger(__name__)

# Time that streams get to send their error event when the drain time is over.
_LAST_WORDS_SECONDS = 1.0


async def serve(settings: FrontendSettings, stopping: asyncio.Event, on_listening: Callable[[int], None]) -> None:
    """Serve until `stopping` is set, then drain and return.

    Args:
        on_listening: gets the port once requests are taken.

    Raises:
        SettingsError: the port is taken, a file of keys, presets or certificates is wrong, or the sessions' database
            cannot be used.
    """
    keys = None if settings.api_keys_file is None else ApiKeys(settings.api_keys_file)
    if keys is None and not _is_loopback(settings.host):
        log.warning(
            "no API keys: whoever reaches this address may use it; set OMNI_FRONTEND_API_KEYS_FILE", host=settings.host
        )
    presets = Presets(settings.presets_dir)
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
        sessions = await open_sessions(settings)
        stack.push_async_callback(sessions.close)
        turns = Turns(sessions)
        streams = Streams(settings.resume_seconds, settings.resume_budget_bytes)
        stack.callback(streams.close)
        metrics.follow_streams(lambda: streams.kept, lambda: streams.size_bytes)
        bodies = BodyReader(settings.body_limit_bytes, settings.body_budget_bytes, settings.body_timeout_s)
        routes = _routes(settings, texts, drain, readiness, metrics, presets, streams, bodies, keys, sessions, turns)
        app = FrontendApp(routes, metrics, keys, _open_paths())
        websockets = WebSocketLimits(
            WEBSOCKET_PATH.encode(),
            settings.body_limit_bytes,
            settings.body_timeout_s,
            settings.write_timeout_s,
            settings.comment_interval_s,
            bodies.budget,
        )
        server = HttpServer(app, _limits(settings), lambda: on_listening(listener.getsockname()[1]), tls, websockets)
        async with asyncio.TaskGroup() as group:
            followed = (texts.run(), presets.follow(), sessions.sweep(), turns.renew())
            lasting = [group.create_task(each) for each in followed]
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
    settings: FrontendSettings,
    texts: TextClient,
    drain: Drain,
    readiness: Readiness,
    metrics: FrontendMetrics,
    presets: Presets,
    streams: Streams,
    bodies: BodyReader,
    keys: ApiKeys | None,
    sessions: Sessions,
    turns: Turns,
) -> list[BaseRoute]:
    timing = Timing(settings.request_timeout_s, settings.first_byte_s, settings.comment_interval_s)

    def parse_chat(body: dict[str, Any]) -> ChatRequest:
        # Nothing behind it knows presets.
        return parse_chat_request(with_preset(body, presets))

    chat = Generating(parse_chat, ChatShape(), texts, timing, metrics, turns)
    completions = Generating(parse_completion_request, CompletionShape(), texts, timing, metrics)
    endpoints = {"chat.completions": chat, "completions": completions}
    sockets = WebSocketEndpoint(
        Services(endpoints, bodies, drain, streams, metrics), _anyone if keys is None else keys.check
    )
    return [
        Route("/v1/chat/completions", GenerateEndpoint(chat, bodies, drain, streams), methods=["POST"]),
        Route("/v1/completions", GenerateEndpoint(completions, bodies, drain, streams), methods=["POST"]),
        WebSocketRoute(WEBSOCKET_PATH, sockets),
        Route(WEBSOCKET_PATH, NoWebSocketEndpoint(), methods=["GET"]),
        Route("/v1/streams/{stream_id}", ResumeEndpoint(streams, timing, metrics), methods=["GET"]),
        Route("/v1/streams/{stream_id}/cancel", CancelEndpoint(streams), methods=["POST"]),
        *(Route(path, each) for path, each in SessionApi(sessions, bodies).endpoints().items()),
        Route("/v1/models", ModelList(texts), methods=["GET"]),
        Route("/v1/models/{name:path}", ModelCard(texts), methods=["GET"]),
        Route("/v1/presets", PresetList(presets), methods=["GET"]),
        Route("/v1/presets/{name}", PresetCard(presets), methods=["GET"]),
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


def _anyone(_headers: RawHeaders) -> None:
    """Let everyone in."""


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
