"""Faults of our own, at ports that a test implements: the caller gets one fixed text, the log the cause, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import structlog
from prometheus_client import CollectorRegistry
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.errors import InternalError
from services.frontend.app import FrontendApp
from services.frontend.body import BodyReader
from services.frontend.chat_request import parse_chat_request
from services.frontend.generate_endpoint import GenerateEndpoint
from services.frontend.generating import Generating
from services.frontend.http_limits import HttpLimits
from services.frontend.http_server import HttpServer, listening_socket
from services.frontend.metrics import FrontendMetrics
from services.frontend.resume.streams import Streams
from services.frontend.shapes import ChatShape, Choice, Shape
from services.frontend.sink import Finished
from services.frontend.streaming import Timing
from services.frontend.text_client import TextClient
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import until
from tests.frontend.requests import CHAT, chat, error_of, events, texts

SECRET = "the secret"
FIXED = {"message": InternalError().message, "type": "server_error", "param": None, "code": None}


class ClosingFails(ChatShape):
    """A shape that fails where a choice ends."""

    def closing(self, finished: Finished) -> dict[str, Any]:
        raise RuntimeError(SECRET)

    def whole_choice(self, choice: Choice) -> dict[str, Any]:
        raise RuntimeError(SECRET)


class ReceivingFails:
    """An application whose server fails to say whether the caller is there, once the first bytes were sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = asyncio.Event()
        body_read = False

        async def receive_once() -> Message:
            nonlocal body_read
            if body_read:
                await said.wait()
                raise RuntimeError(SECRET)
            message = await receive()
            body_read = not message.get("more_body", False)
            return message

        async def send_and_tell(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body":
                said.set()

        await self._app(scope, receive_once, send_and_tell)


@asynccontextmanager
async def serving(
    service: ScriptedTextService, shape: Shape, around: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> AsyncGenerator[httpx.AsyncClient, None]:
    """The chat endpoint with this shape, behind the real HTTP server."""
    address = f"127.0.0.1:{service.port}"
    async with open_channel(address) as channel:
        texts_client, metrics = TextClient({address: channel}), FrontendMetrics(CollectorRegistry())
        endpoint = GenerateEndpoint(
            Generating(parse_chat_request, shape, texts_client, Timing(30, 10, 10), metrics),
            BodyReader(1_000_000, 1_000_000, 5),
            Drain(8, "requests"),
            Streams(60, 1_000_000),
        )
        app = around(FrontendApp([Route(CHAT, endpoint, methods=["POST"])], metrics))
        listening = asyncio.Event()
        server = HttpServer(app, HttpLimits(65_536, 5, 5, 5), listening.set)
        with listening_socket("127.0.0.1", 0) as listener:
            running = [asyncio.create_task(texts_client.run()), asyncio.create_task(server.serve(sockets=[listener]))]
            await listening.wait()
            await until(lambda: texts_client.connected == 1)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=url, headers={"x-request-id": "r-5"}, timeout=10) as client:
                yield client
            server.stop()
            running[0].cancel()
            await asyncio.gather(*running, return_exceptions=True)


def tracebacks(lines: list[Any]) -> list[str]:
    """Request ids of the lines that have a traceback."""
    return [line["request_id"] for line in lines if line.get("exc_info")]


@pytest.mark.parametrize(
    ("shape", "around"),
    [(ClosingFails(), lambda app: app), (ChatShape(), ReceivingFails)],
    ids=["while an event is made", "while the caller is watched"],
)
async def test_a_fault_within_a_stream_ends_it_with_one_error_event(
    service: ScriptedTextService, shape: Shape, around: Callable[[ASGIApp], ASGIApp]
) -> None:
    """After the first byte a fault is one error event of fixed text: no finish reason, no [DONE]; the log has the one
    traceback under the request's id, the connection is closed in order, and the generation is over."""
    words = "one two three"
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        async with serving(service, shape, around) as client:
            # The generation has to be under way when the server fails, and to end for the shape to fail.
            asked = chat(words, stream=True, ignore_eos=around is ReceivingFails)
            response = await client.post(CHAT, json=asked)
            await until(lambda: service.live == 0, seconds=1)
    assert response.status_code == 200
    *chunks, last = events(response.text)
    assert last == {"error": FIXED}
    # How much comes before the server fails is a matter of time; what comes is right.
    assert chunks and "one two three ".startswith(texts(chunks)[: len("one two three ")])
    assert {choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]} == {None}
    assert SECRET not in response.text
    assert tracebacks(lines) == ["r-5"]


async def test_a_fault_before_the_first_byte_is_a_whole_error(service: ScriptedTextService) -> None:
    """A fault in an answer in one piece is a 500 with the same text, and the next request is served."""
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        async with serving(service, ClosingFails()) as client:
            for _ in range(2):
                response = await client.post(CHAT, json=chat())
                assert (response.status_code, error_of(response)) == (500, FIXED)
    assert tracebacks(lines) == ["r-5", "r-5"]
