"""Speaking to a running service, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from services.cli.answer_stream import Piece
from services.cli.service_client import ChatOptions, ServiceClient
from services.cli.service_failure import ServiceFailure, Unreachable
from tests.cli.scripted_http import REQUEST_ID, chat_server
from tests.cli.scripted_service import free_port


async def ask(client: ServiceClient, text: str, options: ChatOptions | None = None) -> Sequence[Piece]:
    """The pieces of an answer."""
    messages = [{"role": "user", "content": text}]
    return [piece async for piece in client.chat({"messages": messages}, options or ChatOptions("tiny"))]


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/"])
async def test_url_is_taken_with_and_without_v1(end: str) -> None:
    """OpenAI clients are given the URL with /v1, browsers without; both name the service."""
    with chat_server("a", "b") as server:
        assert await ServiceClient(server.url + end).model_names() == ["a", "b"]


async def test_answer_comes_in_pieces() -> None:
    """Text comes as it was sent, the finish reason with the last piece, and only given options are sent."""
    with chat_server("tiny") as server:
        pieces = await ask(ServiceClient(server.url), "hello", ChatOptions("tiny", temperature=0.0))
        assert "".join(piece.text for piece in pieces) == "It is Paris\x1b[2J."
        assert [piece.finish_reason for piece in pieces] == [None, None, None, "stop", None]
        assert pieces[-1].usage == {"completion_tokens": 3}
        messages = [{"role": "user", "content": "hello"}]
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        assert server.chats == [{"model": "tiny", "messages": messages, "temperature": 0.0, **streamed}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("refuse", f"too long�[2J (request {REQUEST_ID})"),
        ("fail", f"the engine died (request {REQUEST_ID})"),
        ("break", f"the answer broke off (request {REQUEST_ID})"),
    ],
)
async def test_failure_is_one_line_with_the_request_id(text: str, message: str) -> None:
    """A refusal, an error in the stream and a stream without an end all raise, printably, and name the request."""
    with chat_server("tiny") as server, pytest.raises(ServiceFailure) as caught:
        await ask(ServiceClient(server.url), text)
    assert str(caught.value) == message


async def test_closing_the_answer_closes_the_connection() -> None:
    """The service notices at once that nobody reads any more, so it can stop."""
    with chat_server("tiny") as server:
        messages = [{"role": "user", "content": "forever"}]
        async with aclosing(ServiceClient(server.url).chat({"messages": messages}, ChatOptions("tiny"))) as pieces:
            async for _ in pieces:
                break
        assert await asyncio.to_thread(server.left.wait, 5)


@pytest.mark.parametrize("url", ["nonsense", "http://[", "ftp://127.0.0.1", "http://127.0.0.1:{port}"])
async def test_unreachable_service_is_named(url: str) -> None:
    """Where nothing answers, the error has the URL and says what to do."""
    client = ServiceClient(url.format(port=free_port()))
    with pytest.raises(Unreachable, match=r"no service answers at .*; start one with stream-omni up, or name it"):
        await client.model_names()
    with pytest.raises(ServiceFailure):
        await ask(client, "hello")


async def test_other_service_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has no list of models gives its own error, and a proxy is not asked for this machine."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with chat_server("tiny") as server, pytest.raises(ServiceFailure, match="unknown path"):
        await ServiceClient(f"{server.url}/elsewhere").model_names()
