"""The server under load: where it listens, how a request to it looks, and what it serves."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from services.cli.arguments import CommandError, UsageError

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Target:
    """A server.

    Args:
        url: as it is shown: scheme, host, port and what stands before `/v1`.
        host: its name or address.
        port: TCP port.
        prefix: path before `/v1`, without a slash at its end.
        tls: None for plain HTTP.
        api_key: sent as bearer token, if any.
    """

    url: str
    host: str
    port: int
    prefix: str
    tls: ssl.SSLContext | None
    api_key: str | None

    def head(self, path: str) -> bytes:
        """Return the request's bytes but for the last header's value, the body's length, and what follows it."""
        key = f"authorization: Bearer {self.api_key}\r\n" if self.api_key else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (
            f"POST {self.prefix}{path} HTTP/1.1\r\nhost: {host}:{self.port}\r\naccept: text/event-stream\r\n"
            f"content-type: application/json\r\nuser-agent: stream-omni-bench\r\n{key}content-length: "
        ).encode("ascii")


def parse_target(url: str, api_key: str | None, trusted: ssl.SSLContext | None = None) -> Target:
    """Return the server at a URL, with or without `/v1` at its end, whose certificate `trusted` or the system checks.

    Raises:
        UsageError: it is no URL of an HTTP server, or the key can be in no header.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    is_plain = url.isascii() and url.isprintable() and not set(" @?#") & set(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise UsageError(f"{url!r} is not the URL of a server; give one such as http://127.0.0.1:8000")
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        raise UsageError("the API key has characters that no header can carry; give it in printable ASCII")
    tls = (trusted or ssl.create_default_context()) if parts.scheme == "https" else None
    prefix = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    shown = f"{parts.scheme}://{parts.netloc}{prefix}"
    return Target(shown, parts.hostname, port or (443 if tls else 80), prefix, tls, api_key)


async def first_model(target: Target) -> str:
    """Return the name of the first model that the server lists.

    Raises:
        CommandError: it does not answer, or lists none.
    """
    headers = {"authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    hint = "name the model with --model, or the server with --url"
    try:
        # What is measured is this server, not the way through a proxy that the environment names.
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False, verify=target.tls or True) as http:
            response = await http.get(f"{target.url}/v1/models", headers=headers)
    except (httpx.TransportError, httpx.InvalidURL) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CommandError(f"no server answers at {target.url} ({reason}); {hint}") from error
    if response.status_code != httpx.codes.OK:
        raise CommandError(f"{target.url}/v1/models answered {response.status_code}; {hint}")
    try:
        names = [str(entry["id"]) for entry in response.json()["data"]]
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{target.url}/v1/models gives no list of models; {hint}") from error
    if not names:
        raise CommandError(f"{target.url} serves no model; {hint}")
    return names[0]
