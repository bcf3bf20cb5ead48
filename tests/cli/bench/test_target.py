"""The server under load."""

from __future__ import annotations

import socket

import pytest

from services.cli.arguments import CommandError, UsageError
from services.cli.bench.target import first_model, parse_target
from tests.cli.scripted_http import chat_server


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "shown"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000, "/v1/x", "http://127.0.0.1:8000"),
        ("http://host", "host", 80, "/v1/x", "http://host"),
        ("https://host/v1", "host", 443, "/v1/x", "https://host"),
        ("https://host:8443/v1/", "host", 8443, "/v1/x", "https://host:8443"),
        ("http://host/openai/v1", "host", 80, "/openai/v1/x", "http://host/openai"),
        ("http://[::1]:8000", "::1", 8000, "/v1/x", "http://[::1]:8000"),
    ],
)
def test_url_is_taken_apart(url: str, host: str, port: int, path: str, shown: str) -> None:
    """With or without /v1, with a path before it or none."""
    target = parse_target(url, None)
    assert (target.host, target.port, target.url) == (host, port, shown)
    assert (target.tls is not None) == url.startswith("https")
    head = target.head("/v1/x").decode()
    assert head.startswith(f"POST {path} HTTP/1.1\r\n") and head.endswith("\r\ncontent-length: ")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:8000",
        "ftp://host",
        "http://",
        "http://host:99999",
        "http://h/?q=1",
        "http://h/#f",
        "http://h/a b",
        "http://user:secret@h",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    """What is no HTTP server's URL is told in one line with an example."""
    with pytest.raises(UsageError, match=r"give one such as http://127\.0\.0\.1:8000"):
        parse_target(url, None)


def test_key_that_would_break_the_header_is_refused() -> None:
    """A line break in the key cannot add headers, and the error does not repeat the key."""
    with pytest.raises(UsageError) as refused:
        parse_target("http://host", "key\r\nx-evil: 1")
    assert "evil" not in str(refused.value)


async def test_first_model_is_the_servers_first() -> None:
    """Without a model's name, the first of the list is taken."""
    with chat_server("one", "two") as server:
        assert await first_model(parse_target(server.url, None)) == "one"


async def test_server_without_models_is_told() -> None:
    """An empty list, another path and a closed port are one line each, with what to do."""
    with chat_server() as server:
        with pytest.raises(CommandError, match="serves no model; name the model with --model"):
            await first_model(parse_target(server.url, None))
        with pytest.raises(CommandError, match="/v1/models answered 404"):
            await first_model(parse_target(f"{server.url}/elsewhere", None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(CommandError, match="no server answers at"):
        await first_model(parse_target(f"http://127.0.0.1:{port}", None))
