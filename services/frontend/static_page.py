"""The chat page and its files, read once at start."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.types import Receive, Scope, Send

from services.frontend.responses import Headers, send_body

_CONTENT_TYPES = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "json": b"application/json",
    "mjs": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
# Licences of vendored libraries have no ending.
_PLAIN = b"text/plain; charset=utf-8"

# The page loads nothing from elsewhere and talks to nobody else. HTML is made of text by the sanitizer alone, which
# the browser holds it to: https://www.w3.org/TR/trusted-types/
_POLICY = b"; ".join(
    (
        b"default-src 'none'",
        b"script-src 'self'",
        b"style-src 'self'",
        b"img-src 'self'",
        b"connect-src 'self'",
        b"frame-ancestors 'none'",
        b"base-uri 'none'",
        b"form-action 'none'",
        b"require-trusted-types-for 'script'",
        b"trusted-types dompurify",
    )
)
_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
# Their paths hold their versions.
_VENDORED = b"public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """An ASGI application that serves one file from memory, or tells a browser that it has it (RFC 9110, 13.1.2)."""

    body: bytes
    content_type: bytes
    etag: bytes
    cache_control: bytes = b"no-cache"

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the file."""
        headers: Headers = (*_HEADERS, (b"cache-control", self.cache_control), (b"etag", self.etag))
        if self.etag in [value for name, value in scope["headers"] if name == b"if-none-match"]:
            await send({"type": "http.response.start", "status": 304, "headers": list(headers)})
            await send({"type": "http.response.body", "body": b""})
            return
        await send_body(send, self.body, content_type=self.content_type, headers=headers)


def static_files() -> dict[str, StaticFile]:
    """Return the files by their paths; the page itself is `/`."""
    found: dict[str, StaticFile] = {}
    for name, file in _below(files("services.frontend").joinpath("static")):
        body = file.read_bytes()
        content_type = _CONTENT_TYPES.get(name.rpartition(".")[2], _PLAIN)
        etag = b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode()
        cache_control = _VENDORED if name.startswith("vendor/") and not name.endswith(".json") else b"no-cache"
        path = "/" if name == "index.html" else f"/static/{name}"
        found[path] = StaticFile(body, content_type, etag, cache_control)
    return found


def _below(directory: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(directory.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry
