"""Who may pick up or cancel a stream, and from where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frontend.conftest import Frontend, Starter
from tests.frontend.requests import error_of
from tests.frontend.resume.reading import asking, resuming
from tests.frontend.steps import Steps


async def test_nothing_more_to_read(frontend: Frontend) -> None:
    """A reader who has all of a stream that is over is told by 204, which ends a browser's EventSource. The header goes
    before the query."""
    async with asking(frontend) as stream:
        last, _ = (await stream.rest())[-1]
    path = f"/v1/streams/{stream.id}"
    for given in ({"headers": {"last-event-id": str(last)}}, {"params": {"last_event_id": last}}):
        response = await frontend.client.get(path, **given)
        assert (response.status_code, response.content) == (204, b"")
    both = await frontend.client.get(path, headers={"last-event-id": str(last)}, params={"last_event_id": 0})
    assert both.status_code == 204
    part = await frontend.client.get(path, params={"last_event_id": last - 1})
    assert part.text == f"id: {last}\ndata: [DONE]\n\n"


@pytest.mark.parametrize("last", ["-1", "1.5", "x", "999", "٣", "1" * 30])
async def test_wrong_last_event_ids(frontend: Frontend, last: str) -> None:
    """What is no number of an event of the stream is refused by name."""
    async with asking(frontend) as stream:
        await stream.rest()
    response = await frontend.client.get(f"/v1/streams/{stream.id}", params={"last_event_id": last})
    assert response.status_code == 400
    assert "number" in error_of(response)["message"]


async def test_unknown_streams(frontend: Frontend) -> None:
    """A stream that does not exist cannot be read or cancelled."""
    for answer in (await frontend.client.get("/v1/streams/x"), await frontend.client.post("/v1/streams/x/cancel")):
        assert answer.status_code == 404
        assert (error_of(answer)["code"], error_of(answer)["param"]) == ("stream_not_found", "stream_id")


async def test_streams_belong_to_their_key(start: Starter, tmp_path: Path, steps: Steps) -> None:
    """Another key's stream does not exist for a caller."""
    file = tmp_path / "keys"
    file.write_text("so-one\nso-two\n")
    frontend = await start(api_keys_file=file)
    mine, other = ({"authorization": f"Bearer {key}"} for key in ("so-one", "so-two"))
    async with asking(frontend, mine) as stream:
        steps.say(1)
        path = f"/v1/streams/{stream.id}"
        assert (await frontend.client.get(path, headers=other)).status_code == 404
        assert (await frontend.client.post(f"{path}/cancel", headers=other)).status_code == 404
        assert (await frontend.client.get(path)).status_code == 401
        await stream.next()
    async with resuming(frontend, stream.id, after=1, headers=mine) as again:
        steps.finish()
        assert (await again.rest())[-1][1] == "[DONE]"
