"""A WebSocket's handshake, seen as the HTTP request that it is: its key, its origin, and how it is refused."""

from __future__ import annotations

from urllib.parse import urlsplit

import orjson
from starlette.datastructures import Headers
from starlette.types import Message, Scope, Send

from services.chassis.errors import PermissionDenied

# Browsers let a page set no headers of a WebSocket, but names of subprotocols.
KEY_PREFIX = "bearer."
SUBPROTOCOL = "streamomni.v1"
# A close frame's reason: RFC 6455, section 5.5.
_MAX_REASON_BYTES = 123
_PORTS = {"http": 80, "https": 443}


def as_request(scope: Scope, send: Send) -> Send:
    """Make a handshake look like the request that it is, so that it is let in and refused like any other.

    A key among the subprotocols becomes the header that other callers send.

    Returns: the `send` that takes HTTP's messages too. They refuse the handshake; but a browser tells its page no
    status, so that a page whose key is refused is let in and shown out, with code 1008 and the reason.
    """
    scope["method"] = "GET"
    given = [name for name in scope["subprotocols"] if name.startswith(KEY_PREFIX)]
    keys = [(b"authorization", f"Bearer {name.removeprefix(KEY_PREFIX)}".encode()) for name in given]
    scope["headers"] = [*scope["headers"], *keys]
    from_browser = "origin" in Headers(scope=scope)
    status = 0

    async def send_either(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        if status == 401 and from_browser:
            if message["type"] == "http.response.body":
                await send({"type": "websocket.accept", "subprotocol": answered(scope)})
                reason = orjson.loads(message["body"])["error"]["message"]
                await send({"type": "websocket.close", "code": 1008, "reason": short(reason)})
            return
        if message["type"].startswith("http."):
            message = {**message, "type": f"websocket.{message['type']}"}
        await send(message)

    return send_either


def check_origin(scope: Scope) -> None:
    """Return if the page that opens a WebSocket, if one does, came from the host that it is opened to: browsers let any
    page open one to any host (RFC 6455, section 10.2).

    Raises:
        PermissionDenied: it came from elsewhere.
    """
    headers = Headers(scope=scope)
    origin = headers.get("origin")
    if origin is None:
        return
    scheme, _, place = origin.partition("://")
    if not place or _address(scheme, place) != _address(scheme, headers.get("host", "")):
        raise PermissionDenied(
            "a page of another origin may not open a WebSocket here; serve the page from this host",
            reason="ORIGIN_NOT_ALLOWED",
        )


def answered(scope: Scope) -> str | None:
    """Return which of the offered subprotocols is taken. Browsers give up where they offer some and none is taken."""
    offered: list[str] = scope["subprotocols"]
    if SUBPROTOCOL in offered:
        return SUBPROTOCOL
    return next((name for name in offered if name.startswith(KEY_PREFIX)), None)


def short(reason: str) -> str:
    """Return a reason that fits into a close frame."""
    return reason.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")


def _address(scheme: str, place: str) -> tuple[str | None, int | None] | None:
    try:
        parts = urlsplit(f"//{place}")
        return parts.hostname, parts.port or _PORTS.get(scheme)
    except ValueError:
        return None
