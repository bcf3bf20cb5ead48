"""The chat page and its files, read once at start."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from starlette.types import Receive, Scope, Send

from services.frontend.responses import send_body

_CONTENT_TYPES = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}

# The page loads nothing from elsewhere and talks to nobody else.
_HEADERS = [
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
]


@dataclass(frozen=True, slots=True)
class StaticFile:
    """An ASGI application that serves one file from memory."""

    body: bytes
    content_type: bytes

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the file."""
        await send_body(send, self.body, content_type=self.content_type, headers=_HEADERS)


def static_files() -> dict[str, StaticFile]:
    """Return the files by their paths; the page itself is `/`."""
    found: dict[str, StaticFile] = {}
    for file in files("services.frontend").joinpath("static").iterdir():
        content_type = _CONTENT_TYPES[file.name.rpartition(".")[2]]
        path = "/" if file.name == "index.html" else f"/static/{file.name}"
        found[path] = StaticFile(file.read_bytes(), content_type)
    return found
