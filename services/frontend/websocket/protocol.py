"""Bounds of a WebSocket that uvicorn does not have, and the way past ASGI's `send`.

The one module that knows uvicorn's WebSocket class. https://www.rfc-editor.org/rfc/rfc6455
"""

from __future__ import annotations

import asyncio
import contextvars
from dataclasses import dataclass
from typing import Any, cast

from starlette.types import Scope
from uvicorn import Config
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request
from websockets.protocol import State

from services.chassis.errors import InvalidRequest, ServiceError
from services.frontend import direct_body
from services.frontend.bare_refusal import refusal
from services.frontend.byte_budget import ByteBudget
from services.frontend.errors import HeadersTooLarge
from services.frontend.stall_watch import StallWatch

# What a piece of a message takes beside its own bytes. A message may come in pieces of no bytes.
_PIECE_OVERHEAD_BYTES = 64
_TEXT = 0x81
# A peer that still sends gets this long to read why the connection is closed.
_LINGER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class WebSocketLimits:
    """Bounds of one WebSocket; times in seconds.

    Args:
        path: the one path at which there are WebSockets.
        message_bytes: largest message.
        message_timeout: longest pause within a message.
        write_timeout: a peer that takes nothing, or shows no sign of life, for this long has its connection aborted.
        ping_interval: time after which a peer is asked for a sign of life.
        budget: holds all messages and bodies that are being read.
    """

    path: bytes
    message_bytes: int
    message_timeout: float
    write_timeout: float
    ping_interval: float
    budget: ByteBudget


class LimitedWebSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket.

    - A handshake that is none is answered with an error object.
    - Messages beyond the limit: 1009. Messages that pause: 1008. No memory left for them: 1013.
    - The end of the service: 1001.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = cast("WebSocketLimits", config.websockets)  # type: ignore[attr-defined]
        self._stall: StallWatch
        # Of the message that is not whole yet: its pieces, and what is held of the budget for it.
        self._pieces_bytes = 0
        self._held_bytes = 0
        self._pause_timer: asyncio.TimerHandle | None = None
        self._failed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection whose first request asks for a WebSocket."""
        super().connection_made(transport)
        self._stall = StallWatch(self.transport, self._limits.write_timeout, self.client)

    def connection_lost(self, exc: Exception | None) -> None:
        """End all timers and hold nothing."""
        self._stall.end()
        self._hold(0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, within bounds."""
        if self._failed or self.transport.is_closing():
            return
        if self.handshake_initiated and not self.handshake_complete:
            # Nobody may speak before the answer: RFC 6455, section 4.1.
            self.transport.abort()
            return
        super().data_received(data)
        if not self.handshake_initiated and self.conn.handshake_exc is not None:
            self._refuse(HeadersTooLarge("a WebSocket's request may have 128 headers of 8192 bytes each; send less"))
            return
        if not self.close_sent:
            waiting = len(self.conn.reader.buffer)
            if not self._hold(self._pieces_bytes + waiting):
                self._fail(CloseCode.TRY_AGAIN_LATER, "other messages take up the memory for messages")

    def handle_connect(self, event: Request) -> None:
        """Begin to serve a handshake that is one."""
        response = self.conn.accept(event)
        if response.status_code != 101:
            self._refuse(InvalidRequest(f"the WebSocket handshake is not valid: {self.conn.handshake_exc}"))
            return
        # In a context of its own, lest its log lines have the fields of whoever was served before.
        contextvars.Context().run(super().handle_connect, event)
        direct_body.offer(cast("Scope", self.scope), self._write_now)

    def handle_text(self, event: Frame) -> None:
        """Take the first piece of a message."""
        self._count_piece(event)
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Take the first piece of a message."""
        self._count_piece(event)
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Take a further piece of a message."""
        self._count_piece(event)
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hand a whole message on."""
        self._pieces_bytes = 0
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self._fail(CloseCode.INVALID_DATA, "a text message must be UTF-8")
                return
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answer a ping. A peer that reads nothing gets no answers, which would pile up."""
        pong = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(pong)

    def handle_parser_exception(self) -> None:
        """Say why the connection is closed, and close it once the peer has had time to read that: closing it with bytes
        unread would reset it."""
        self._failed = True
        self._pieces_bytes = 0
        self._hold(0)
        self.stop_keepalive()
        assert self.conn.close_sent is not None
        code, reason = self.conn.close_sent.code, self.conn.close_sent.reason
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.transport.resume_reading()
        self.close_timer = self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def keepalive_timeout(self) -> None:
        """Give up a peer that shows no sign of life. What it was to read is not waited for."""
        super().keepalive_timeout()
        self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    async def send(self, message: ASGISendEvent) -> None:
        """Send for the application.

        Raises:
            ClientDisconnected: an `OSError`; the socket is closed.
        """
        await self.writable.wait()
        if self.handshake_complete and self.close_sent:
            raise ClientDisconnected
        await super().send(message)

    def pause_writing(self) -> None:
        """Begin to wait for the reader."""
        super().pause_writing()
        self._stall.begin()

    def resume_writing(self) -> None:
        """The reader has taken enough."""
        self._stall.end()
        super().resume_writing()

    def shutdown(self) -> None:
        """Say that the service ends, and close the connection."""
        self.stop_keepalive()
        if self.handshake_complete and not self.close_sent and self.conn.state is State.OPEN:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": 1001})
            self.conn.send_close(CloseCode.GOING_AWAY)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.transport.close()
        else:
            super().shutdown()

    def _write_now(self, text: bytes) -> bool:
        """Write a text message, if the reader takes it at once. See `direct_body.WriteNow`."""
        if not self.writable.is_set() or self.close_sent or self.disconnected or self.conn.state is not State.OPEN:
            return False
        self.transport.write(_head(len(text)) + text)
        return True

    def _count_piece(self, piece: Frame) -> None:
        self._pieces_bytes += len(piece.data) + _PIECE_OVERHEAD_BYTES
        if self._pieces_bytes > self._limits.message_bytes + _PIECE_OVERHEAD_BYTES:
            self.frames = []
            self._fail(CloseCode.MESSAGE_TOO_BIG, "a message may not have so many pieces")

    def _hold(self, size_bytes: int) -> bool:
        """Hold so many bytes of the budget for the message that is not whole yet, which must go on."""
        budget = self._limits.budget
        if self._pause_timer is not None:
            self._pause_timer.cancel()
            self._pause_timer = None
        if size_bytes < self._held_bytes:
            budget.give(self._held_bytes - size_bytes)
        elif not budget.take(size_bytes - self._held_bytes):
            return False
        self._held_bytes = size_bytes
        if size_bytes > 0:
            self._pause_timer = self.loop.call_later(
                self._limits.message_timeout, self._fail, CloseCode.POLICY_VIOLATION, "a message paused for too long"
            )
        return True

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close the connection because of what came."""
        if self.close_sent or self.disconnected:
            return
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def _refuse(self, error: ServiceError) -> None:
        """Answer a handshake without the application, and close the connection."""
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.transport.write(refusal(error, self.default_headers, self.client))
        self.transport.close()


def _head(size_bytes: int) -> bytes:
    """The head of a text message in one frame: RFC 6455, section 5.2."""
    if size_bytes < 126:
        return bytes((_TEXT, size_bytes))
    if size_bytes < 65536:
        return bytes((_TEXT, 126)) + size_bytes.to_bytes(2)
    return bytes((_TEXT, 127)) + size_bytes.to_bytes(8)
