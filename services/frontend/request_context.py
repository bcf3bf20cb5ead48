"""What is known of a request from its headers to its log line."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import Scope

from services.frontend.sink import FinishReason, Usage

_MAX_ID_CHARS = 128
# https://www.w3.org/TR/trace-context/#traceparent-header
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_SCOPE_KEY = "streamomni.request"


@dataclass(slots=True)
class RequestContext:
    """One request: its ids, and what came of it.

    The outcome is filled in where it becomes known, for the log line and metrics.
    """

    request_id: str
    traceparent: str | None
    # Whose sessions and streams it may reach; empty where there are no keys.
    owner: str = ""
    # Name of its key; empty where that has none.
    caller: str = ""
    began: float = field(default_factory=time.perf_counter)
    status: int | None = None
    finish_reasons: tuple[FinishReason, ...] = ()
    usage: Usage | None = None
    error: str | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the request began."""
        return time.perf_counter() - self.began


def open_context(scope: Scope) -> RequestContext:
    """Make the context of a request and leave it in its scope.

    An `x-request-id` of printable ASCII, at most 128 characters, is kept; else one
    is made. A malformed `traceparent` is dropped, as its standard says.
    """
    headers = Headers(scope=scope)
    request_id = headers.get("x-request-id", "")
    if not (0 < len(request_id) <= _MAX_ID_CHARS and request_id.isascii() and request_id.isprintable()):
        request_id = f"req-{uuid.uuid4().hex}"
    traceparent = headers.get("traceparent")
    if traceparent is not None and not _TRACEPARENT.fullmatch(traceparent):
        traceparent = None
    context = RequestContext(request_id, traceparent)
    scope[_SCOPE_KEY] = context
    return context


def context_of(scope: Scope) -> RequestContext:
    """Return the context that `open_context` left in a scope."""
    context: RequestContext = scope[_SCOPE_KEY]
    return context
