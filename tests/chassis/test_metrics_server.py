from __future__ import annotations

import socket

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter

from services.chassis.metrics_server import metrics_server
from services.chassis.settings import SettingsError


def test_registry_is_served_while_the_block_lasts() -> None:
    """The registry's metrics are served as Prometheus' text, and the port is closed afterwards."""
    registry = CollectorRegistry()
    Counter("cars", "Cars seen.", registry=registry).inc(3)
    with metrics_server(registry, "127.0.0.1", 0) as port:
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        assert "cars_total 3.0" in answer.text
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/metrics")


def test_busy_port_is_told_in_one_line() -> None:
    """A port that is taken is a SettingsError of one line that names it."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"127.0.0.1:{port}") as refusal,
            metrics_server(CollectorRegistry(), "127.0.0.1", port),
        ):
            pass
    assert "\n" not in str(refusal.value)


def test_impossible_port_is_told_in_one_line() -> None:
    """A number that is no port is a SettingsError too."""
    with pytest.raises(SettingsError, match="99999"), metrics_server(CollectorRegistry(), "127.0.0.1", 99999):
        pass
