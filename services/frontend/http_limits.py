"""Bounds of a connection that uvicorn does not have: size and time of headers, readers that take nothing.

The one module that knows uvicorn's protocol class.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from services.chassis.errors import InvalidRequest, ServiceError
from services.frontend import direct_body
from services.frontend.bare_refusal import refusal
from services.frontend.errors import HeadersTooLarge, RequestTimeout
from services.frontend.stall_watch import StallWatch
from services.frontend.websocket.protocol import LimitedWebSocketProtocol, WebSocketLimits

# A caller that still sends gets this long to read why it was refused: closing
# at once would reset the connection and take the answer away.
_LINGER_SECONDS = 2.0

_BODY_HEADERS = (b"content-length", b"transfer-encoding")


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of one connection; times in seconds."""

    header_bytes: int
    header_timeout: float
    write_timeout: float
    keep_alive: int


class LimitedConfig(uvicorn.Config):
    """uvicorn's configuration, with our bounds, TLS where a context is given, and WebSockets where bounds are."""

    def __init__(
        self,
        app: Any,
        limits: HttpLimits,
        tls: ssl.SSLContext | None = None,
        websockets: WebSocketLimits | None = None,
    ) -> None:
        super().__init__(
            app,
            http=LimitedHttpProtocol,
            ws="none" if websockets is None else LimitedWebSocketProtocol,
            ws_max_size=0 if websockets is None else websockets.message_bytes,
            ws_ping_interval=None if websockets is None else websockets.ping_interval,
            ws_ping_timeout=None if websockets is None else websockets.write_timeout,
            # A small message could unpack to a large one.
            ws_per_message_deflate=False,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="warning",
            access_log=False,
            # Both would be read from the environment otherwise.
            workers=1,
            forwarded_allow_ips=[],
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=limits.keep_alive,
            # Requests were drained before; what is left is ended.
            timeout_graceful_shutdown=1,
            # Else one request's log fields show up in the next one's lines.
            reset_contextvars=True,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        )
        self.limits = limits
        self.websockets = websockets


class _Refused(Exception):
    """Ends the parsing of a request that has been answered."""


class _PatientTransport:
    """A connection as an answer sees it. Closing it with bytes of the request unread would reset it, and a caller who
    still sends would lose the answer; so who closes it decides when.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.close = close


class _DirectBody:
    """Writes pieces of one response's body; see `direct_body.WriteNow`."""

    __slots__ = ("_call_soon", "_cycle", "_flow", "_gathered", "_write")

    def __init__(self, cycle: RequestResponseCycle, loop: asyncio.AbstractEventLoop) -> None:
        self._call_soon = loop.call_soon
        self._gathered: list[bytes] = []
        self._cycle = cycle
        self._flow = cycle.flow
        self._write = cycle.transport.write

    def write(self, body: bytes) -> bool:
        """Write a piece, if the response has begun, is not over, and its reader takes it."""
        cycle = self._cycle
        if self._flow.write_paused or cycle.disconnected or not cycle.chunked_encoding or cycle.response_complete:
            # The encoding is known once the response has begun.
            return False
        self._write(b"%x\r\n%b\r\n" % (len(body), body))
        return True

    def gather(self, body: bytes) -> bool:
        """Take a piece on the same terms; all that are taken in one pass of the event loop are written together."""
        cycle = self._cycle
        if self._flow.write_paused or cycle.disconnected or not cycle.chunked_encoding or cycle.response_complete:
            return False
        if not self._gathered:
            # Runs before whatever this pass wakes, so nothing that goes through `send` overtakes it.
            self._call_soon(self._write_gathered)
        self._gathered.append(body)
        return True

    def _write_gathered(self) -> None:
        body, self._gathered = b"".join(self._gathered), []
        if not self._cycle.disconnected:
            self._write(b"%x\r\n%b\r\n" % (len(body), body))


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection.

    - Headers beyond the limit: 431. Headers that take too long: 408.
    - A request sent before the answer to the last one is not served: while its
      bytes wait unread, the caller's leaving would go unnoticed.
    - A reader that takes nothing for `write_timeout` has its connection aborted.
    """

    def __init__(
        self,
        config: LimitedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._in_head = True
        self._head_bytes = 0
        self._deaf = False
        self._closing = False
        self._timer: asyncio.TimerHandle | None = None
        self._stall: StallWatch

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._stall = StallWatch(transport, self._limits.write_timeout, self.client)
        self._arm(self._limits.header_timeout, self._on_head_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all timers."""
        self._disarm()
        self._stall.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, within bounds."""
        if self._deaf:
            return
        if self._in_head:
            if self._answering:
                self._ignore_rest()
                return
            if self._timer is None:
                self._arm(self._limits.header_timeout, self._on_head_timeout)
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self._limits.header_bytes:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin a request, unless the last one is still being answered."""
        if self._answering:
            self._ignore_rest()
            raise _Refused
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Start to serve the request, if its headers are within the limit."""
        self._in_head = False
        self._disarm()
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self._limits.header_bytes:
            self._refuse_head()
            raise _Refused
        if self.parser.should_upgrade() and any(name in _BODY_HEADERS for name, _ in self.headers):
            # The parser takes what follows for another protocol, so the body cannot be read.
            self._refuse(InvalidRequest("no other protocol is spoken here; send the request without upgrade"))
            raise _Refused
        super().on_headers_complete()
        if self._becomes_websocket():
            return
        self.cycle.transport = _PatientTransport(self.transport, self._close_after_request)  # type: ignore[assignment]
        direct = _DirectBody(self.cycle, self.loop)
        direct_body.offer(cast("Scope", self.scope), direct.write, direct.gather)
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        super().on_message_complete()
        self._in_head = True
        self._head_bytes = 0
        self._disarm()
        if self._closing:
            self.transport.close()

    def on_response_complete(self) -> None:
        """Bound the time for the rest of a request that was answered before its end."""
        super().on_response_complete()
        if not self._in_head:
            self._arm(self._limits.header_timeout, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        if not self._deaf:
            self._refuse(InvalidRequest("the request is not valid HTTP/1.1"))

    def pause_writing(self) -> None:
        """Begin to wait for the reader."""
        super().pause_writing()
        self._stall.begin()

    def resume_writing(self) -> None:
        """The reader has taken enough."""
        self._stall.end()
        super().resume_writing()

    def _should_upgrade(self) -> bool:
        # Elsewhere, and in other ways, the request is answered as if it did not ask: RFC 9110, section 7.8.
        sockets = cast("LimitedConfig", self.config).websockets
        is_path = sockets is not None and self.url.partition(b"?")[0] == sockets.path
        is_get = self.parser.get_method() == b"GET" and self.parser.get_http_version() == "1.1"
        return is_path and is_get and super()._should_upgrade()

    def _becomes_websocket(self) -> bool:
        return self.parser.should_upgrade() and self._should_upgrade()

    def _close_after_request(self) -> None:
        self._closing = True
        if self._in_head:
            self.transport.close()
        else:
            self._arm(self._limits.header_timeout, self.transport.close)

    def _arm(self, seconds: float, action: Callable[[], None]) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, action)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_head_timeout(self) -> None:
        if self._head_bytes == 0:
            self.transport.close()
        else:
            self._refuse(RequestTimeout("the request's headers did not arrive in time; send them at once"))

    def _refuse_head(self) -> None:
        limit = self._limits.header_bytes
        self._refuse(HeadersTooLarge(f"the request line and headers may have at most {limit} bytes; send less"))

    def _ignore_rest(self) -> None:
        self._deaf = True
        self._disarm()
        self.cycle.keep_alive = False

    def _refuse(self, error: ServiceError) -> None:
        """Answer without the application, and close the connection."""
        self._deaf = True
        if self._answering and self.cycle.response_started:
            self.transport.close()
            return
        self.transport.write(refusal(error, self.server_state.default_headers, self.client))
        self._arm(_LINGER_SECONDS, self.transport.close)
