"""What ends a stream that outlives its connections."""

from __future__ import annotations

import asyncio

import httpx
import structlog

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import CHAT, chat, error_of
from tests.frontend.resume.reading import asking, resuming, words
from tests.frontend.steps import Steps


async def test_time_without_a_reader(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """A stream that nobody reads for its time is cancelled and forgotten; a reader who comes in time keeps it, however
    often, and while one reads the time does not run."""
    frontend = await start(resume_seconds=0.6)
    async with asking(frontend, {"x-request-id": "kept"}) as stream:
        steps.say(1)
        await stream.next()
    for _ in range(2):
        await asyncio.sleep(0.3)
        async with resuming(frontend, stream.id, after=1) as again:
            steps.say(1)
            await again.next()
            await asyncio.sleep(0.7)
    assert service.live == 1
    await until(lambda: service.live == 0, seconds=1.5)
    assert service.cancelled == ["kept"]
    gone = await frontend.client.get(f"/v1/streams/{stream.id}")
    assert (gone.status_code, error_of(gone)["code"]) == (404, "stream_not_found")
    metrics = (await frontend.client.get("/metrics")).text
    assert "streamomni:resumable_streams 0.0" in metrics and "streamomni:resumable_stream_bytes 0.0" in metrics


async def test_time_after_the_end(start: Starter) -> None:
    """A stream that is over can be read for its time, also by a reader who was there, and is then forgotten."""
    frontend = await start(resume_seconds=0.6)
    async with asking(frontend) as stream:
        got = await stream.rest()
    async with resuming(frontend, stream.id, after=2) as again:
        assert await again.rest() == got[2:]
    await asyncio.sleep(0.9)
    assert (await frontend.client.get(f"/v1/streams/{stream.id}")).status_code == 404


async def test_cancel(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """An explicit cancel ends the generation within a second, and the stream, for those who read and those who come
    back, with an error event that says so: no finish reason, no [DONE]."""
    async with asking(frontend, {"x-request-id": "stopped"}) as stream:
        steps.say(2)
        got = [await stream.next() for _ in range(3)]
        path = f"/v1/streams/{stream.id}/cancel"
        response = await frontend.client.post(path)
        assert (response.status_code, response.json()) == (200, {"id": stream.id, "cancelled": True})
        await until(lambda: service.cancelled == ["stopped"], seconds=1)
        rest = await stream.rest()
    ((number, last),) = rest
    assert number == 4
    assert (last["error"]["code"], last["error"]["type"]) == ("cancelled", "invalid_request_error")
    assert words(got) == "w0 w1 "
    async with resuming(frontend, stream.id, after=3) as again:
        assert await again.rest() == rest
    assert (await frontend.client.post(path)).json()["cancelled"] is True


async def test_cancel_without_a_reader(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """A stream whose connection was lost can be cancelled too; one that is over says that it is."""
    async with asking(frontend) as stream:
        steps.say(1)
        await stream.next()
    assert (await frontend.client.post(f"/v1/streams/{stream.id}/cancel")).json()["cancelled"] is True
    await until(lambda: service.live == 0, seconds=1)
    async with asking(frontend) as other:
        steps.finish()
        await other.rest()
    assert (await frontend.client.post(f"/v1/streams/{other.id}/cancel")).json()["cancelled"] is False


async def test_leaving_before_the_response_cancels(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """A caller who leaves before it can know the stream's id ends the generation."""

    async def silent(request: object) -> object:
        await asyncio.Event().wait()
        yield None

    service.script = silent  # type: ignore[assignment]
    frontend = await start()
    async with httpx.AsyncClient(base_url=frontend.url) as client:
        body = chat(stream=True, stream_options={"resumable": True})
        posting = asyncio.create_task(client.post(CHAT, json=body, headers={"x-request-id": "left"}, timeout=60))
        await until(lambda: service.live == 1)
        await asyncio.sleep(0.1)
        posting.cancel()
    await until(lambda: service.cancelled == ["left"], seconds=1)
    assert "streamomni:resumable_streams 0.0" in (await frontend.client.get("/metrics")).text


async def test_the_time_of_a_request_ends_a_stream_without_a_reader(
    start: Starter, service: ScriptedTextService, steps: Steps
) -> None:
    """The longest time of a generation holds for a resumable one, read or not."""
    frontend = await start(request_timeout_s=0.5)
    async with asking(frontend) as stream:
        steps.say(1)
        await stream.next()
    await until(lambda: service.live == 0, seconds=1.5)
    async with resuming(frontend, stream.id, after=2) as again:
        ((_, last),) = await again.rest()
    assert last["error"]["code"] == "deadline_exceeded"


async def test_drain(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """A stream without a reader gets its time when the service stops, and can be picked up meanwhile; what still runs
    then ends with an error event."""
    frontend = await start(drain_seconds=2)
    async with asking(frontend) as stream:
        steps.say(1)
        await stream.next()
    frontend.stopping.set()
    await until(lambda: not frontend.task.done())
    async with resuming(frontend, stream.id, after=1) as again:
        steps.say(2)
        steps.finish()
        assert (await again.rest())[-1][1] == "[DONE]"
    await frontend.task


async def test_end_of_the_drain(start: Starter, steps: Steps) -> None:
    """What still runs when the drain's time is over ends with an error event that its reader sees."""
    frontend = await start(drain_seconds=0.2)
    async with asking(frontend) as stream:
        steps.say(1)
        await stream.next()
        frontend.stopping.set()
        rest = await stream.rest()
    assert rest[-1][1]["error"]["code"] == "draining"
    await frontend.task


async def test_places(start: Starter, service: ScriptedTextService, steps: Steps) -> None:
    """A resumable generation holds one place among those allowed, with a reader or without, until it is over."""
    frontend = await start(max_requests=1)
    async with asking(frontend) as stream:
        steps.say(1)
        await stream.next()
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 503
    await frontend.client.post(f"/v1/streams/{stream.id}/cancel")
    await until(lambda: service.live == 0)
    steps.finish()
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_it_is_counted_once(frontend: Frontend, steps: Steps) -> None:
    """Tokens of a stream that is read in parts are counted once, and its end is one line of the log."""
    with structlog.testing.capture_logs() as lines:
        async with asking(frontend) as stream:
            steps.say(3)
            await stream.next()
        async with resuming(frontend, stream.id, after=1) as again:
            steps.finish()
            await again.rest()
    assert "streamomni:http_completion_tokens_total 3.0" in (await frontend.client.get("/metrics")).text
    (line,) = [line for line in lines if line["event"] == "resumable stream ended"]
    assert (line["stream_id"], line["finish_reason"], line["error"]) == (stream.id, "stop", None)
