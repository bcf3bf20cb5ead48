"""What operators ask: health and metrics."""

from __future__ import annotations

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.types import Receive, Scope, Send

from services.frontend.responses import send_body
from services.frontend.text_client import TextClient


class Readiness:
    """Whether requests should be sent here, and why not."""

    def __init__(self, texts: TextClient) -> None:
        self._texts = texts
        self._draining = False

    def begin_drain(self) -> None:
        """Say from now on that the service ends."""
        self._draining = True

    @property
    def obstacle(self) -> str | None:
        """What speaks against sending requests, or None."""
        if self._draining:
            return "the service is shutting down"
        if not self._texts.connected:
            return "no text service is connected"
        if not self._texts.healthy:
            return "no model is ready"
        return None


class LiveEndpoint:
    """GET /health/live: the process answers."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Say so."""
        await send_body(send, b'{"status":"live"}')


class ReadyEndpoint:
    """GET /health/ready: 200, or 503 with the reason."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Say whether requests should be sent here."""
        obstacle = self._readiness.obstacle
        if obstacle is None:
            await send_body(send, b'{"status":"ready"}')
        else:
            await send_body(send, orjson.dumps({"status": "not ready", "reason": obstacle}), status=503)


class MetricsEndpoint:
    """GET /metrics, in Prometheus' text format."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send all metrics."""
        await send_body(send, generate_latest(self._registry), content_type=CONTENT_TYPE_LATEST.encode())
