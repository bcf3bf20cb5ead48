"""Streams that outlive their connections."""

from __future__ import annotations

import asyncio
import random

import pytest

from services.chassis.errors import Overloaded
from services.frontend.resume.stream import STREAM_BYTES
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter
from tests.frontend.requests import CHAT, chat, error_of, events
from tests.frontend.resume.reading import asking, resuming, words
from tests.frontend.steps import Steps


async def test_events_are_those_of_other_streams(frontend: Frontend, service: ScriptedTextService) -> None:
    """A resumable stream has an id and numbers its events from 1; what the events hold is what other streams send."""
    plain = events((await frontend.client.post(CHAT, json=chat("a b", stream=True))).text)
    async with asking(frontend) as stream:
        assert stream.id.startswith("strm_")
        got = await stream.rest()
    assert [number for number, _ in got] == list(range(1, len(plain) + 1))
    own = {"id": plain[0]["id"], "created": plain[0]["created"]}
    assert [event if event == "[DONE]" else event | own for _, event in got] == plain


async def test_other_streams_have_no_ids(frontend: Frontend) -> None:
    """A stream that nobody asked to be resumable has no event ids and no stream's id, and nothing is kept of it."""
    for options in (None, {"resumable": False}, {"include_usage": False}):
        response = await frontend.client.post(CHAT, json=chat(stream=True, stream_options=options))
        assert "x-stream-id" not in response.headers and "id: " not in response.text
    assert "streamomni:resumable_streams 0.0" in (await frontend.client.get("/metrics")).text


async def test_a_cut_stream_is_picked_up(frontend: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """A lost connection cancels nothing: the reader who comes back gets exactly what it has not seen, at once, and what
    comes from then on."""
    async with asking(frontend) as stream:
        steps.say(3)
        first = [await stream.next() for _ in range(3)]
    steps.say(2)
    await asyncio.sleep(0.1)
    assert service.live == 1 and service.cancelled == []
    async with resuming(frontend, stream.id, after=3) as again:
        assert again.id == stream.id
        missed = [await again.next() for _ in range(3)]
        steps.say(1)
        live = [await again.next()]
        steps.finish()
        rest = await again.rest()
    got = first + missed + live + rest
    assert [number for number, _ in got] == list(range(1, len(got) + 1))
    assert words(got) == "w0 w1 w2 w3 w4 w5 "
    assert got[-1][1] == "[DONE]"
    async with resuming(frontend, stream.id, after=0) as whole:
        assert await whole.rest() == got


async def test_many_readers_at_once(frontend: Frontend, steps: Steps) -> None:
    """Readers who come and go at random while words come see each event once, in order, whoever else reads."""
    dice = random.Random(5)
    async with asking(frontend) as stream:
        steps.say(1)

        async def read(reader: int) -> list[int]:
            seen: list[int] = []
            while not seen or seen[-1] < 200:
                async with resuming(frontend, stream.id, after=len(seen)) as again:
                    for _ in range(dice.randint(1, 40)):
                        number, event = await again.next()
                        seen.append(number)
                        if event == "[DONE]":
                            return seen
            return seen

        async def speak() -> None:
            for _ in range(60):
                steps.say(dice.randint(1, 6))
                await asyncio.sleep(0.005)
            steps.say(200)
            steps.finish()

        *all_seen, _, own = await asyncio.gather(*(read(number) for number in range(5)), speak(), stream.rest())
    for seen in all_seen:
        assert seen == list(range(1, len(seen) + 1))
    assert [number for number, _ in own] == list(range(1, len(own) + 1))


async def test_comments_while_nothing_comes(start: Starter, steps: Steps) -> None:
    """A quiet stream begins with a comment after its time and has comments in its pauses; comments have no id and are
    not sent again."""
    frontend = await start(first_byte_s=0.2, comment_interval_s=0.2)
    steps.finish()
    async with asking(frontend) as stream:
        await stream.rest()

    async def quiet() -> None:
        await asyncio.sleep(0.5)
        steps.say(1)
        await asyncio.sleep(0.5)
        steps.finish()

    speaking = asyncio.create_task(quiet())
    body = chat(stream=True, stream_options={"resumable": True})
    response = await frontend.client.post(CHAT, json=body)
    await speaking
    before, after = response.text.split("w0 ")
    assert before.count(": keep-alive\n\n") == 2 and after.count(": keep-alive\n\n") == 2
    again = await frontend.client.get(f"/v1/streams/{response.headers['x-stream-id']}")
    assert again.text == response.text.replace(": keep-alive\n\n", "")


async def test_refusals_keep_their_status(frontend: Frontend, steps: Steps) -> None:
    """A failure that comes before anything else is an error response, and nothing is kept; a later one is the stream's
    last event, also for those who come back."""
    async with asyncio.timeout(5):
        unknown = await frontend.client.post(
            CHAT, json=chat(stream=True, stream_options={"resumable": True}) | {"model": "other"}
        )
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "model_not_found")
    assert "streamomni:resumable_streams 0.0" in (await frontend.client.get("/metrics")).text
    async with asking(frontend) as stream:
        steps.say(1)
        await stream.next()
        steps.fail(Overloaded("all places are taken"))
        rest = await stream.rest()
    assert rest[-1][1]["error"]["code"] == "overloaded"
    async with resuming(frontend, stream.id, after=rest[-1][0] - 1) as again:
        assert await again.rest() == rest[-1:]


async def test_old_events_go(frontend: Frontend, steps: Steps) -> None:
    """Of a long stream the newest events are kept, within a mebibyte; who asks for earlier ones learns which there
    are."""
    async with asking(frontend) as stream:
        steps.say(8000)
        steps.finish()
        got = await stream.rest()
    refused = await frontend.client.get(f"/v1/streams/{stream.id}")
    assert (refused.status_code, error_of(refused)["code"]) == (410, "events_gone")
    first = int(error_of(refused)["message"].split("number ")[1].split(" ")[0])
    assert 1 < first < len(got)
    async with resuming(frontend, stream.id, after=first - 1) as again:
        assert await again.rest() == got[first - 1 :]
    taken = float(
        (await frontend.client.get("/metrics")).text.split("\nstreamomni:resumable_stream_bytes ")[1].split()[0]
    )
    assert STREAM_BYTES // 2 < taken < STREAM_BYTES * 1.1


@pytest.mark.parametrize("value", [1, "yes", []])
async def test_wrong_types(frontend: Frontend, value: object) -> None:
    """`resumable` is a boolean, of streams alone."""
    body = chat(stream=True, stream_options={"resumable": value})
    assert error_of(await frontend.client.post(CHAT, json=body))["param"] == "stream_options.resumable"
    without = await frontend.client.post(CHAT, json=chat(stream_options={"resumable": True}))
    assert (without.status_code, error_of(without)["param"]) == (400, "stream_options")
