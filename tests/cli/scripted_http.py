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
from urllib.parse import parse_qsl

from tests.certificates import Pair
from tests.cli.scripted_sessions import Sessions

REQUEST_ID = "req-1"
TRANSLATE = {
    "object": "preset",
    "name": "translate",
    "title": "Translate",
    "description": "Translates.",
    "variables": [{"name": "language", "description": "the target", "choices": ["French", "German"]}],
}


class ChatServer(ThreadingHTTPServer):
    """Keeps the chats that it was asked, and notices those whose connection closed."""

    daemon_threads = True

    def __init__(
        self,
        models: list[str],
        key: str | None = None,
        pair: Pair | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Exchange)
        self.sessions = sessions
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
    # What a turn of a session tells of it.
    _told: dict[str, Any] | None = None

    def do_GET(self) -> None:
        """List the models."""
        if self.server.key and self.headers["authorization"] != f"Bearer {self.server.key}":
            self._send(401, {"error": {"message": "no", "code": "invalid_api_key"}})
        elif self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": name} for name in self.server.models]})
        elif self.path == "/v1/presets" and self.server.sessions is not None:
            self._send(200, {"object": "list", "data": [TRANSLATE]})
        elif self._is_of_sessions():
            self._send(*self._of_sessions({}))
        else:
            self._send(404, {"error": {"message": "unknown path"}})

    def do_POST(self) -> None:
        """Answer what is asked of sessions, and a chat by the last message's first word."""
        body = self._body()
        if self.server.key and self.headers["authorization"] != f"Bearer {self.server.key}":
            self._send(401, {"error": {"message": "no", "code": "invalid_api_key"}})
            return
        if self.path != "/v1/chat/completions":
            known = self._of_sessions(body) if self._is_of_sessions() else (404, {"error": {"message": "unknown path"}})
            self._send(*known)
            return
        if self.server.sessions is not None and self.server.sessions.busy:
            self.server.sessions.busy -= 1
            self._send(409, {"error": {"message": "the session has a turn under way", "code": "session_busy"}})
            return
        self.server.chats.append(body)
        if self.server.sessions is not None and "session_id" in body and "refuse" not in json.dumps(body):
            self._told, said = self.server.sessions.begin(body)
        else:
            said = body["messages"]
        word = said[-1]["content"].split()[0]
        if word == "refuse":
            self._send(400, {"error": {"message": "too\nlong\x1b[2J", "type": "invalid_request_error"}})
            return
        self.send_response(200)
        self.send_header("x-request-id", REQUEST_ID)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        words = {"forever": self._forever, "fail": self._fail, "break": self._break, "trim": self._trim}
        words.get(word, self._answer)()

    def do_PATCH(self) -> None:
        """Change a session."""
        self._send(*self._of_sessions(self._body()))

    def do_DELETE(self) -> None:
        """Delete a session."""
        self._send(*self._of_sessions({}))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        self._event(_chunk({"role": "assistant", "content": ""}) | ({"session": self._told} if self._told else {}))
        self.wfile.write(b": keep-alive\n\n")
        self._event(_chunk({"content": "It is "}))
        self._event(_chunk({"content": "Paris\x1b[2J."}))
        is_limited = "max_tokens" in self.server.chats[-1]
        self._event(_chunk({}, "length" if is_limited else "stop"))
        self._event({"choices": [], "usage": {"completion_tokens": 3}})
        if self._told and self.server.sessions is not None:
            self.server.sessions.end(self._told["answer_id"], "It is Paris\x1b[2J.")
        self.wfile.write(b"data: [DONE]\n\n")

    def _trim(self) -> None:
        """Answer with all that an answer can tell beside its text."""
        match = {"action": "mask", "rule": "names", "start": 3, "length": 5}
        fault = {"check": "json", "position": 9, "message": "an object is not closed"}
        context = {"policy": "sliding_window", "dropped_messages": 2, "dropped_tokens": 40}
        self._event(_chunk({"reasoning": "Hm."}) | {"context": context})
        masked = _chunk({"content": "It █████"})
        masked["choices"][0]["filter_matches"] = [match]
        self._event(masked)
        last = _chunk({}, "stop")
        last["choices"][0] |= {"filter_matches": [match], "format_faults": [fault]}
        self._event(last)
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

    def _body(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["content-length"])))
        return content

    def _is_of_sessions(self) -> bool:
        return self.server.sessions is not None and self.path.startswith("/v1/sessions")

    def _of_sessions(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        assert self.server.sessions is not None
        path, _, query = self.path.partition("?")
        return self.server.sessions.respond(self.command, path, body, dict(parse_qsl(query)))

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
def chat_server(
    *models: str, key: str | None = None, pair: Pair | None = None, sessions: Sessions | None = None
) -> Iterator[ChatServer]:
    """Serve on a free port until the block is left; with a key, only callers who send it, and with a pair, HTTPS."""
    with ChatServer(list(models), key, pair, sessions) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
