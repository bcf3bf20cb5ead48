"""The ASGI application: routes, and the one place where errors become responses and requests are logged."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import structlog
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Router
from starlette.types import Message, Receive, Scope, Send

from services.chassis.errors import InternalError, ServiceError
from services.frontend.api_keys import ApiKeys, owner_of
from services.frontend.disconnect import ClientGone
from services.frontend.errors import MethodNotAllowed, UnknownPath
from services.frontend.metrics import FrontendMetrics
from services.frontend.request_context import RequestContext, open_context
from services.frontend.responses import send_error
from services.frontend.websocket.handshake import as_request

log = structlog.get_logger(__name__)

# nginx's number for a caller who left before the response began; never sent.
CLIENT_GONE_STATUS = 499
_MAX_LOGGED_PATH_CHARS = 200
_BEGINNINGS = ("http.response.start", "websocket.accept")
_PROBES = ("/health/live", "/health/ready", "/metrics")


class FrontendApp:
    """Serves all routes of the frontend.

    Args:
        keys: who may use them; None lets everyone.
        open_paths: need no key. All others do, those that are not served too, so that no spelling of a path evades it.
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        metrics: FrontendMetrics,
        keys: ApiKeys | None = None,
        open_paths: Collection[str] = (),
    ) -> None:
        self._router = Router(routes, redirect_slashes=False)
        self._metrics = metrics
        self._keys = keys
        self._open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or one WebSocket."""
        if scope["type"] == "websocket":
            send = as_request(scope, send)
        context = open_context(scope)
        # Tells the router to raise what it finds wrong.
        scope["app"] = self
        structlog.contextvars.bind_contextvars(request_id=context.request_id)

        async def send_noting(message: Message) -> None:
            if message["type"] in _BEGINNINGS:
                # A WebSocket that is let in has no status of its own.
                context.status = message.get("status", 101)
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", context.request_id.encode())]
                self._metrics.time_to_first_byte.labels(_route_of(scope)).observe(context.elapsed)
            await send(message)

        try:
            await self._serve(scope, receive, send_noting, context)
        finally:
            self._conclude(scope, context)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, context: RequestContext) -> None:
        try:
            if self._keys is not None and scope["path"] not in self._open_paths:
                context.caller = self._keys.check(scope["headers"])
                context.owner = owner_of(scope["headers"])
            try:
                await self._router(scope, receive, send)
            except HTTPException as error:
                raise _error_of(error, scope) from None
        except ClientGone:
            context.error = "CLIENT_GONE"
            self._metrics.cancelled.labels(_route_of(scope)).inc()
            if context.status is None:
                context.status = CLIENT_GONE_STATUS
        except ServiceError as error:
            await self._fail(send, error, context)
        except Exception:
            log.exception("request failed")
            await self._fail(send, InternalError(), context)

    async def _fail(self, send: Send, error: ServiceError, context: RequestContext) -> None:
        context.error = error.reason
        # A response that has begun is left incomplete; the server then closes the connection.
        if context.status is None:
            await send_error(send, error)

    def _conclude(self, scope: Scope, context: RequestContext) -> None:
        route = _route_of(scope)
        status = str(context.status or "cancelled")
        self._metrics.requests.labels(route, status).inc()
        self._metrics.duration.labels(route).observe(context.elapsed)
        usage = context.usage
        # Probes come each second and would bury the rest.
        tell = log.debug if route in _PROBES and context.error is None else log.info
        tell(
            "request",
            method=scope["method"],
            path=scope["path"][:_MAX_LOGGED_PATH_CHARS],
            status=context.status,
            duration_ms=round(context.elapsed * 1000, 1),
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            finish_reason=",".join(sorted(set(context.finish_reasons))) or None,
            error=context.error,
        )


def _route_of(scope: Scope) -> str:
    # A label for each path that anybody thinks of would have no bound.
    route = scope.get("route")
    return "unknown" if route is None else str(route.path)


def _error_of(error: HTTPException, scope: Scope) -> ServiceError:
    if error.status_code == 405:
        allowed = ", ".join(sorted((error.headers or {})["Allow"].split(", ")))
        return MethodNotAllowed(f"{scope['method']} is not allowed here; use {allowed}", allowed)
    return UnknownPath("nothing is served at this path; the API is below /v1, such as /v1/chat/completions")
