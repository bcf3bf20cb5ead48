"""What is said over a WebSocket, and what is no message."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from services.chassis.errors import Overloaded
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, until
from tests.frontend.requests import chat, texts
from tests.frontend.steps import Steps
from tests.frontend.websocket.sockets import chunks, open_socket, start

BAD_MESSAGES: list[tuple[Any, str | None, str]] = [
    ("", None, "the message is empty"),
    ("{", None, "the message is not valid JSON"),
    ("[1]", None, "the message must be a JSON object"),
    ('{"type":"ping","type":"ping"}', None, "gives one name twice"),
    ("[" * 10000, None, "not valid JSON"),
    (b"\x00\x01", None, "binary"),
    ({}, "type", "start, cancel and ping"),
    ({"type": "stop"}, "type", "start, cancel and ping"),
    ({"type": 1}, "type", "must be a string"),
    ({"type": "cancel"}, "id", "id is required"),
    ({"type": "cancel", "id": "nobody"}, "id", "no generation of this id"),
    ({"type": "start"}, "id", "id is required"),
    ({"type": "start", "id": ""}, "id", "id is required"),
    ({"type": "start", "id": 1}, "id", "must be a string"),
    ({"type": "start", "id": "x" * 129}, "id", "at most 128"),
    ({"type": "start", "id": "a"}, "endpoint", "chat.completions and completions"),
    ({"type": "start", "id": "a", "endpoint": "embeddings"}, "endpoint", "chat.completions and completions"),
    ({"type": "start", "id": "a", "endpoint": "completions"}, "body", "body must be an object"),
    ({"type": "start", "id": "a", "endpoint": "completions", "body": []}, "body", "body must be an object"),
]


async def test_bad_messages(frontend: Frontend) -> None:
    """What is no command is answered with an error object that names no generation; the socket and what runs on it go
    on."""
    async with open_socket(frontend) as socket:
        for message, param, told in BAD_MESSAGES:
            await socket.send(message)
            answer = await socket.next()
            assert set(answer) == {"type", "error"} and answer["type"] == "error", told
            assert set(answer["error"]) == {"message", "type", "param", "code", "request_id"}, told
            assert (answer["error"]["type"], answer["error"]["param"]) == ("invalid_request_error", param), told
            assert told in answer["error"]["message"]
            await socket.start("a", "still here")
            assert texts(chunks(await socket.until("done"))) == "still here ", told


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        (chat(temperature=3), "temperature", None),
        (chat(stream=False), "stream", None),
        (chat(stream_options={"resumable": True}), "stream_options.resumable", None),
        (chat() | {"model": "other"}, "model", "model_not_found"),
        ({}, "model", None),
    ],
)
async def test_refused_requests(frontend: Frontend, body: dict[str, Any], param: str, code: str | None) -> None:
    """A request that is refused, by whichever tier, ends its generation with the error that HTTP has, and a request id;
    others go on."""
    async with open_socket(frontend) as socket:
        await socket.send(start("bad", body))
        await socket.start("good")
        got = await socket.ended(2)
    last = got["bad"][-1]
    assert (last["type"], last["error"]["param"], last["error"]["code"]) == ("error", param, code)
    assert last["error"]["request_id"].startswith("req-")
    assert texts(chunks(got["good"])) == "one two three "


async def test_failures_keep_to_their_generation(
    frontend: Frontend, service: ScriptedTextService, steps: Steps
) -> None:
    """A generation that fails in the middle ends with an error, and tells when to try again."""
    async with open_socket(frontend) as socket:
        await socket.start("a")
        steps.say(2)
        steps.fail(Overloaded("all places are taken"))
        *before, last = await socket.until("error")
    assert texts(chunks(before)) == "w0 w1 "
    assert (last["id"], last["error"]["code"], last["error"]["retry_after_ms"]) == ("a", "overloaded", 1000)


async def test_duplicate_ids(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """A second generation under an id that is in use is refused by a message that is not the first one's end."""
    async with open_socket(frontend) as socket:
        await socket.start("a")
        await until(lambda: service.live == 1)
        await socket.start("a")
        refused = (await socket.until("error"))[-1]
        assert "id" not in refused and refused["error"]["code"] == "duplicate_id"
        steps.say(1)
        steps.finish()
        assert texts(chunks(await socket.until("done"))) == "w0 "
    assert len(service.requests) == 1


async def test_ping(frontend: Frontend, steps: Steps) -> None:
    """A ping is answered, while generations run too."""
    async with open_socket(frontend) as socket:
        await socket.send({"type": "ping"})
        assert await socket.next() == {"type": "pong"}
        await socket.start("a")
        assert (await socket.next())["type"] == "started"
        await socket.send({"type": "ping"})
        assert {"type": "pong"} in await socket.until("pong")


async def test_a_large_message(frontend: Frontend) -> None:
    """A request of several megabytes is served, and others meanwhile."""
    async with open_socket(frontend) as socket:
        await socket.start("large", "word " * 600_000, max_tokens=5)
        await socket.start("small")
        got = await socket.ended(2)
    assert got["large"][-1]["type"] == "done" and texts(chunks(got["small"])) == "one two three "


async def test_pipelined_messages(frontend: Frontend) -> None:
    """Messages that come at once are taken in order: a start, and a cancel of it."""
    async with open_socket(frontend) as socket:
        for number in range(20):
            await socket.start("a", "word " * 1000)
            await socket.send({"type": "cancel", "id": "a"})
            last = (await socket.ended(1))["a"][-1]
            assert last["type"] in ("cancelled", "done"), number


async def test_other_requests(frontend: Frontend) -> None:
    """The path answers requests that ask for no WebSocket with 426 and an error object."""
    answer = await frontend.client.get("/v1/stream")
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    assert json.loads(answer.text)["error"]["code"] == "upgrade_required"
    assert (await frontend.client.post("/v1/stream")).status_code == 405
    async with httpx.AsyncClient(base_url=frontend.url) as client:
        upgrading = {"connection": "upgrade", "upgrade": "websocket"}
        assert (await client.get("/health/live", headers=upgrading)).status_code == 200
        assert (await client.get("/v1/stream/", headers=upgrading)).status_code == 404
