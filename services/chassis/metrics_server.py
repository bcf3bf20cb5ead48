"""A port that serves a registry's metrics in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from services.chassis.settings import SettingsError


@contextmanager
def metrics_server(registry: CollectorRegistry, host: str, port: int) -> Iterator[int]:
    """Serve `registry` at `http://host:port/metrics` from a thread of its own.

    Yields: the port, which differs from `port` where that is 0.

    Raises:
        SettingsError: the port is taken.
    """
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as error:
        raise SettingsError(f"metrics port {host}:{port} cannot be opened: {error}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
