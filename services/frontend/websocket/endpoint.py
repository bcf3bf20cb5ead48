"""/v1/stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from services.frontend.api_keys import RawHeaders
from services.frontend.direct_body import write_now_of
from services.frontend.errors import UpgradeRequired
from services.frontend.request_context import context_of
from services.frontend.websocket.connection import Connection, Services
from services.frontend.websocket.handshake import answered, check_origin


@dataclass(frozen=True, slots=True)
class WebSocketEndpoint:
    """Opens WebSockets and serves them.

    Args:
        check_key: raises `Unauthenticated` where a handshake's headers hold no accepted key.
    """

    services: Services
    check_key: Callable[[RawHeaders], object]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket until it is closed.

        Raises:
            PermissionDenied: a page of another origin opens it.
        """
        check_origin(scope)
        await receive()
        await send({"type": "websocket.accept", "subprotocol": answered(scope)})
        connection = Connection(
            self.services,
            send,
            write_now_of(scope),
            context_of(scope),
            lambda: self.check_key(scope["headers"]),
        )
        with self.services.metrics.websockets.track_inprogress():
            await connection.run(receive)


class NoWebSocketEndpoint:
    """Answers those who ask for the path without asking for a WebSocket."""

    async def __call__(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
        """Refuse.

        Raises:
            UpgradeRequired: always.
        """
        raise UpgradeRequired("this path is a WebSocket's; open it as one, or ask /v1/chat/completions")
