"""The frontend's metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class FrontendMetrics:
    """All metrics of this tier, in a registry of their own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Counter(
            "streamomni:http_requests", "Requests by route and status.", ("route", "status"), registry=registry
        )
        self.duration = Histogram(
            "streamomni:http_request_duration_seconds",
            "Time from a request's headers to the end of its response.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.time_to_first_byte = Histogram(
            "streamomni:http_time_to_first_byte_seconds",
            "Time from a request's headers to the first byte of its response.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.active_streams = Gauge(
            "streamomni:http_active_streams", "Server-sent event streams under way.", registry=registry
        )
        self.websockets = Gauge("streamomni:websockets", "WebSockets that are open.", registry=registry)
        self.cancelled = Counter(
            "streamomni:http_requests_cancelled",
            "Requests whose caller left before the end of the response.",
            ("route",),
            registry=registry,
        )
        self.prompt_tokens = Counter(
            "streamomni:http_prompt_tokens", "Prompt tokens of all requests.", registry=registry
        )
        self.completion_tokens = Counter(
            "streamomni:http_completion_tokens", "Tokens generated for all requests.", registry=registry
        )

    def follow_streams(self, kept: Callable[[], float], size_bytes: Callable[[], float]) -> None:
        """Report the number of resumable streams that are kept, running and ended, and the bytes that they take."""
        Gauge(
            "streamomni:resumable_streams", "Resumable streams kept, running and ended.", registry=self.registry
        ).set_function(kept)
        Gauge(
            "streamomni:resumable_stream_bytes", "What kept resumable streams take.", registry=self.registry
        ).set_function(size_bytes)

    def follow(self, connected: Callable[[], float], live: Callable[[], float]) -> None:
        """Report the number of text services connected, and of generations under way at them."""
        Gauge(
            "streamomni:text_links_connected", "Text services that are connected.", registry=self.registry
        ).set_function(connected)
        Gauge(
            "streamomni:generations_active", "Generations under way at the text services.", registry=self.registry
        ).set_function(live)
