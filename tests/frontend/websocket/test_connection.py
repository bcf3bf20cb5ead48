"""Several generations over one WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog

from services.frontend.websocket.connection import MAX_GENERATIONS
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, events, texts
from tests.frontend.steps import Steps
from tests.frontend.websocket.sockets import chunks, open_socket, start


async def test_generations_beside_each_other(frontend: Frontend) -> None:
    """Twenty generations of both endpoints over one socket give exactly the chunks that server-sent events have, but
    for the answers' ids and times; each begins with its stream's id and ends once."""
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for number in range(10):
        options = {"stream_options": {"include_usage": True}} if number % 2 else {}
        text = " ".join(f"n{number}w{word}" for word in range(number * 7))
        asked[f"chat {number}"] = (CHAT, chat(text or "x", n=1 + number % 3, **options))
        asked[f"text/{number}"] = (COMPLETIONS, completion(text or "x", logprobs=number % 2, echo=number % 3 == 0))
    async with open_socket(frontend) as socket:
        for generation_id, (path, body) in asked.items():
            await socket.send(start(generation_id, body, "chat.completions" if path == CHAT else "completions"))
        got = await socket.ended(len(asked))
    for generation_id, (path, body) in asked.items():
        plain = events((await frontend.client.post(path, json=body | {"stream": True})).text)
        first, *_, last = got[generation_id]
        assert (first["type"], first["stream_id"][:5], last) == (
            "started",
            "strm_",
            {"type": "done", "id": generation_id},
        )
        own = {"id": plain[0]["id"], "created": plain[0]["created"]}
        said = [chunk | own for chunk in chunks(got[generation_id])]
        by_choice = sorted(plain[:-1], key=lambda chunk: [choice["index"] for choice in chunk["choices"]] or [99])
        assert sorted(said, key=lambda chunk: [choice["index"] for choice in chunk["choices"]] or [99]) == by_choice


async def test_ids_can_be_used_again(frontend: Frontend) -> None:
    """An id is free as soon as its client knows that the generation is over."""
    async with open_socket(frontend) as socket:
        for number in range(200):
            await socket.start("a", f"word{number}")
            assert texts(chunks(await socket.until("done"))) == f"word{number} "


async def test_cancel_by_id(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """Cancelling one generation ends it at the engine within a second and leaves the others alone."""
    async with open_socket(frontend) as socket:
        for generation_id in ("a", "b"):
            await socket.start(generation_id)
        await until(lambda: service.live == 2)
        await socket.send({"type": "cancel", "id": "a"})
        before = await socket.until("cancelled")
        assert before[-1] == {"type": "cancelled", "id": "a"}
        await until(lambda: service.live == 1, seconds=1)
        steps.say(1)
        steps.finish()
        rest = before + await socket.until("done")
        assert texts(chunks([message for message in rest if message["id"] == "b"])) == "w0 "
        assert not any(message["type"] == "done" and message["id"] == "a" for message in rest)


async def test_cancel_over_http(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """A generation over a WebSocket can be cancelled by its stream's id too; it cannot be picked up."""
    async with open_socket(frontend) as socket:
        await socket.start("a")
        stream_id = (await socket.next())["stream_id"]
        await until(lambda: service.live == 1)
        assert (await frontend.client.get(f"/v1/streams/{stream_id}")).status_code == 404
        answer = await frontend.client.post(f"/v1/streams/{stream_id}/cancel")
        assert answer.json() == {"id": stream_id, "cancelled": True}
        assert (await socket.until("cancelled"))[-1]["id"] == "a"
        await until(lambda: service.live == 0, seconds=1)
        assert (await frontend.client.post(f"/v1/streams/{stream_id}/cancel")).status_code == 404


@pytest.mark.parametrize("how", ["close", "abort"])
async def test_leaving_cancels_all(frontend: Frontend, service: ScriptedTextService, steps: Steps, how: str) -> None:
    """Closing the socket, in order or not, ends all of its generations within a second."""
    async with open_socket(frontend) as socket:
        for number in range(5):
            await socket.start(str(number))
        await until(lambda: service.live == 5)
        assert "streamomni:websockets 1.0" in (await frontend.client.get("/metrics")).text
        if how == "abort":
            socket.connection.transport.abort()
        else:
            await socket.connection.close()
        await until(lambda: service.live == 0, seconds=1)
    assert len(service.cancelled) == 5
    metrics = (await frontend.client.get("/metrics")).text
    assert "streamomni:websockets 0.0" in metrics
    assert 'streamomni:http_requests_cancelled_total{route="/v1/stream"} 5.0' in metrics


async def test_too_many(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """Beyond its number of generations a socket gets an error for the next, and takes one again when one has ended."""
    async with open_socket(frontend) as socket:
        for number in range(MAX_GENERATIONS):
            await socket.start(str(number))
        await until(lambda: service.live == MAX_GENERATIONS)
        await socket.start("more")
        refused = (await socket.until("error"))[-1]
        assert (refused["id"], refused["error"]["code"]) == ("more", "too_many_generations")
        assert refused["error"]["type"] == "rate_limit_error"
        await socket.send({"type": "cancel", "id": "0"})
        await socket.until("cancelled")
        await until(lambda: service.live == MAX_GENERATIONS - 1)
        await socket.start("more")
        await until(lambda: service.live == MAX_GENERATIONS)


async def test_places(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """Generations over WebSockets take places among those of the whole service."""
    frontend = await start(max_requests=2)
    async with open_socket(frontend) as socket:
        for generation_id in ("a", "b", "c"):
            await socket.start(generation_id)
        refused = (await socket.until("error"))[-1]
        assert (refused["id"], refused["error"]["code"]) == ("c", "overloaded")
        assert (await frontend.client.post(CHAT, json=chat())).status_code == 503
    await until(lambda: service.live == 0, seconds=1)
    steps.finish()
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_the_time_of_a_request(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """The longest time of a generation holds here too."""
    frontend = await start(request_timeout_s=0.3)
    async with open_socket(frontend) as socket:
        await socket.start("a")
        assert (await socket.until("error"))[-1]["error"]["code"] == "deadline_exceeded"
    await until(lambda: service.live == 0, seconds=1)


async def test_a_slow_reader(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """A client that does not read has its generations ended once what waits for it exceeds its bound, not the others'.
    It learns that when it reads on."""
    frontend = await start()
    async with open_socket(frontend) as socket, open_socket(frontend) as other:
        await socket.start("slow")
        await until(lambda: service.live == 1)
        socket.connection.transport.pause_reading()
        steps.say(200_000)
        await until(lambda: service.live == 0, seconds=20)
        await other.start("quick")
        await until(lambda: service.live == 1)
        steps.say(1)
        steps.finish()
        assert texts(chunks(await other.until("done"))) == "w0 "
        socket.connection.transport.resume_reading()
        last = (await socket.until("error"))[-1]
    assert last["error"]["code"] == "slow_reader"


async def test_drain(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """When the service stops, nothing new is taken, what runs gets its time, and all sockets are closed with 1001."""
    frontend = await start(drain_seconds=5)
    async with open_socket(frontend) as socket, open_socket(frontend) as idle:
        await socket.start("a")
        await until(lambda: service.live == 1)
        frontend.stopping.set()
        await asyncio.sleep(0.1)
        await socket.start("b")
        assert (await socket.until("error"))[-1]["error"]["code"] == "draining"
        steps.say(1)
        steps.finish()
        assert texts(chunks(await socket.until("done"))) == "w0 "
        assert await socket.close_code() == 1001
        assert await idle.close_code() == 1001
    await frontend.task


async def test_end_of_the_drain(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """What still runs when the drain's time is over ends with an error, before the socket is closed."""
    frontend = await start(drain_seconds=0.2)
    async with open_socket(frontend) as socket:
        await socket.start("a")
        await until(lambda: service.live == 1)
        frontend.stopping.set()
        assert (await socket.until("error"))[-1]["error"]["code"] == "draining"
        assert await socket.close_code() == 1001
    await frontend.task


async def test_counts_and_log(frontend: Frontend) -> None:
    """Tokens are counted as over HTTP, and each generation has a line of the log with its own request id."""
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        async with open_socket(frontend) as socket:
            await socket.start("a", "one two")
            await socket.start("b", "one two three")
            await socket.ended(2)
        await until(lambda: any(line.get("path") == "/v1/stream" for line in lines))
    assert "streamomni:http_completion_tokens_total 5.0" in (await frontend.client.get("/metrics")).text
    told = [line for line in lines if line["event"] == "generation over a WebSocket"]
    assert [line["finish_reason"] for line in told] == ["stop", "stop"]
    assert sorted(line["completion_tokens"] for line in told) == [2, 3]
    assert len({line["request_id"] for line in told}) == 2
    (socket_line,) = [line for line in lines if line.get("path") == "/v1/stream"]
    assert (socket_line["event"], socket_line["status"], socket_line["error"]) == ("request", 101, None)
