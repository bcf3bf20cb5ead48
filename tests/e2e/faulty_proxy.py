"""A proxy before a running service that fails some requests, as networks and busy services do."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from services.chassis.errors import ServiceError
from services.frontend.errors import error_headers, error_object, http_of

# They are about one connection alone; the proxy has two.
_OF_ONE_CONNECTION = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
# A connection that is closed instead of an answer.
DROPPED = b""


@dataclass(frozen=True)
class SeenRequest:
    """A request that reached the proxy, and when in seconds of the monotonic clock."""

    body: dict[str, Any]
    time: float


@dataclass
class FaultyProxy:
    """A running proxy. It answers the next requests with `faults`, one each, and hands on what comes after; of the next
    answers that it hands on, it loses the connection to the caller after `cuts` bytes, one number each."""

    url: str
    faults: deque[bytes] = field(default_factory=deque)
    cuts: deque[int] = field(default_factory=deque)
    seen: list[SeenRequest] = field(default_factory=list)


def answer_of(error: ServiceError) -> bytes:
    """Return what our frontend answers with an error, to the byte."""
    body = error_object(error)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *error_headers(error)]
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"HTTP/1.0 %d Failed\r\n%b\r\n%b" % (http_of(error).status, lines, body)


@contextmanager
def faulty_proxy(upstream: str) -> Iterator[FaultyProxy]:
    """Run a proxy before the service at a URL. It speaks HTTP/1.0: a connection for each request."""

    class Forwarding(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Answer with the next fault, or with what the service answers."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            proxy.seen.append(SeenRequest(json.loads(body), time.monotonic()))
            if proxy.faults:
                self.wfile.write(proxy.faults.popleft())
                return
            self._hand_on(body)

        def do_GET(self) -> None:
            """Answer with what the service answers."""
            self._hand_on(b"")

        def _hand_on(self, body: bytes) -> None:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_ONE_CONNECTION}
            url, left = f"{upstream}{self.path}", proxy.cuts.popleft() if proxy.cuts else None
            with httpx.stream(self.command, url, content=body, headers=headers, timeout=120) as response:
                self.send_response(response.status_code)
                for name, value in response.headers.items():
                    if name.lower() not in _OF_ONE_CONNECTION:
                        self.send_header(name, value)
                self.end_headers()
                for piece in response.iter_raw():
                    self.wfile.write(piece[:left])
                    left = None if left is None else left - len(piece)
                    if left is not None and left <= 0:
                        return

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Forwarding) as server:
        proxy = FaultyProxy(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
