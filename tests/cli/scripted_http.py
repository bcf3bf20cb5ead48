"""A small real HTTP service that answers chats as its last message asks."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.certificates import Pair

REQUEST_ID = "req-1"


class ChatServer(ThreadingHTTPServer):
    """Keeps the chats that it was asked, and notices those whose connection closed."""

    daemon_threads = True

    def __init__(self, models: list[str], key: str | None = None, pair: Pair | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.models = models
        self.key = key
        self.scheme = "http" if pair is None else "https"
        if pair is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair.certificate, pair.key)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.chats: list[dict[str, Any]] = []
        self.left = threading.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"


class _Exchange(BaseHTTPRequestHandler):
    server: ChatServer

    def do_GET(self) -> None:
        """List the models."""
        if self.server.key and self.headers["authorization"] != f"Bearer {self.server.key}":
            self._send(401, {"error": {"message": "no", "code": "invalid_api_key"}})
        elif self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": name} for name in self.server.models]})
        else:
            self._send(404, {"error": {"message": "unknown path"}})

    def do_POST(self) -> None:
        """Answer a chat by the last message's first word."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.server.key and self.headers["authorization"] != f"Bearer {self.server.key}":
            self._send(401, {"error": {"message": "no", "code": "invalid_api_key"}})
            return
        self.server.chats.append(body)
        word = body["messages"][-1]["content"].split()[0]
        if word == "refuse":
            self._send(400, {"error": {"message": "too\nlong", "type": "invalid_request_error"}})
            return
        self.send_response(200)
        self.send_header("x-request-id", REQUEST_ID)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        {"forever": self._forever, "fail": self._fail, "break": self._break}.get(word, self._answer)()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        self._event(_chunk({"role": "assistant", "content": ""}))
        self.wfile.write(b": keep-alive\n\n")
        self._event(_chunk({"content": "It is "}))
        self._event(_chunk({"content": "Paris\x1b[2J."}))
        is_limited = "max_tokens" in self.server.chats[-1]
        self._event(_chunk({}, "length" if is_limited else "stop"))
        self._event({"choices": [], "usage": {"completion_tokens": 3}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _forever(self) -> None:
        try:
            while True:
                self._event(_chunk({"content": "on and "}))
                time.sleep(0.02)
        except OSError:
            self.server.left.set()

    def _fail(self) -> None:
        self._event(_chunk({"content": "half"}))
        self._event({"error": {"message": "the engine died", "type": "server_error"}})

    def _break(self) -> None:
        self._event(_chunk({"content": "half"}))

    def _event(self, content: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(content)}\n\n".encode())
        self.wfile.flush()

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("x-request-id", REQUEST_ID)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _chunk(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


@contextmanager
def chat_server(*models: str, key: str | None = None, pair: Pair | None = None) -> Iterator[ChatServer]:
    """Serve on a free port until the block is left; with a key, only callers who send it, and with a pair, HTTPS."""
    with ChatServer(list(models), key, pair) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
