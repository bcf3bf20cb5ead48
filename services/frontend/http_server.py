"""uvicorn inside our own event loop: our socket, our signals, our limits."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from services.chassis.settings import SettingsError
from services.frontend.http_limits import HttpLimits, LimitedConfig
from services.frontend.websocket.protocol import WebSocketLimits

_BACKLOG = 2048


@contextmanager
def listening_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Open the port.

    Raises:
        SettingsError: it is taken, or not an address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        # A name that cannot be resolved has a negative number of another kind.
        cause = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise SettingsError(f"port {host}:{port} cannot be opened: {cause}; is another service using it?") from error
    with contextlib.closing(listener):
        yield listener


class HttpServer(uvicorn.Server):
    """uvicorn without signal handlers of its own.

    Args:
        on_listening: is called once requests are taken.
        tls: holds the certificate; None is plain HTTP.
        websockets: where there are WebSockets; None serves none.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: HttpLimits,
        on_listening: Callable[[], None],
        tls: ssl.SSLContext | None = None,
        websockets: WebSocketLimits | None = None,
    ) -> None:
        super().__init__(LimitedConfig(app, limits, tls, websockets))
        self._on_listening = on_listening

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave the signals to the service."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests."""
        await super().startup(sockets)
        self._on_listening()

    def stop(self) -> None:
        """Take no more requests; `serve` then returns."""
        self.should_exit = True
