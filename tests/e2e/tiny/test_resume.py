"""Streams that are picked up again, and what ends them, on the running service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.e2e.faulty_proxy import faulty_proxy
from tests.e2e.service import Service, wait_until

TOKENS = 120
LONG = 8000


@pytest.fixture(autouse=True)
def _idle_before(service: Service) -> None:
    wait_until(service.is_idle, 30, "vLLM is not idle before the test")


@dataclass
class Stream:
    """What was read of a stream: its id, its events' numbers and contents."""

    id: str
    numbers: list[int]
    events: list[Any]

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(event["choices"][0]["text"] for event in self.events if event != "[DONE]")


def asked(service: Service, max_tokens: int = TOKENS, **fields: Any) -> dict[str, Any]:
    """A streamed completion with a seed."""
    sampled = {"temperature": 0.9, "seed": 11, "ignore_eos": True, "max_tokens": max_tokens}
    return {"model": service.model, "prompt": [1, 500, 501, 502], "stream": True, **sampled, **fields}


def read(pieces: Iterator[str], stream: Stream, stop_after: int | None = None) -> None:
    """Take in events until the stream's end, or until so many are there. One that was cut is none."""
    buffer = ""
    for piece in pieces:
        buffer += piece
        while "\n\n" in buffer:
            event, buffer = buffer.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in event.splitlines())
            if "data" not in fields:
                continue
            stream.numbers.append(int(fields.get("id", 0)))
            stream.events.append(fields["data"] if fields["data"] == "[DONE]" else json.loads(fields["data"]))
            if stop_after is not None and len(stream.events) >= stop_after:
                return


@contextmanager
def begun(service: Service, max_tokens: int = TOKENS, events: int = 5) -> Iterator[Stream]:
    """A resumable stream of which some events were read; its connection is lost when the block is left."""
    body = asked(service, max_tokens, stream_options={"resumable": True})
    with httpx.stream("POST", f"{service.url}/v1/completions", json=body, timeout=60) as response:
        stream = Stream(response.headers["x-stream-id"], [], [])
        read(response.iter_text(), stream, events)
        yield stream


def test_a_stream_that_is_cut_again_and_again(service: Service) -> None:
    """A reader whose connection is lost again and again, after any number of bytes, has the text of a reader who lost
    nothing, with each event once."""
    whole = Stream("", [], [])
    with httpx.stream("POST", f"{service.url}/v1/completions", json=asked(service), timeout=60) as response:
        read(response.iter_text(), whole)
    with faulty_proxy(service.url) as proxy:
        proxy.cuts.extend([900, 1, 2500, 700, 5000, 3000])
        body = asked(service, stream_options={"resumable": True})
        stream = Stream("", [], [])
        reads = 0
        while not stream.events or stream.events[-1] != "[DONE]":
            last = stream.numbers[-1] if stream.numbers else 0
            path = f"{proxy.url}/v1/streams/{stream.id}"
            again = {"method": "GET", "url": path, "headers": {"last-event-id": str(last)}}
            first = {"method": "POST", "url": f"{proxy.url}/v1/completions", "json": body}
            with httpx.stream(**(again if stream.id else first), timeout=60) as response:  # type: ignore[arg-type]
                assert response.status_code == 200
                stream.id = response.headers["x-stream-id"]
                read(response.iter_text(), stream)
            reads += 1
    assert reads == 7
    assert stream.numbers == list(range(1, len(whole.events) + 1))
    assert stream.text == whole.text != ""


def test_leaving_without_being_resumable(service: Service) -> None:
    """A caller who leaves a stream that is not resumable frees the engine within a second."""
    body = asked(service, LONG)
    with httpx.stream("POST", f"{service.url}/v1/completions", json=body, timeout=60) as response:
        # Whoever drops it closes the connection.
        pieces = response.iter_text()
        read(pieces, Stream("", [], []), 5)
        wait_until(lambda: not service.is_idle(), 5, "nothing runs")
    wait_until(service.is_idle, 1, "vLLM is not idle")


def test_leaving_a_resumable_stream(service: Service) -> None:
    """A resumable stream goes on when its caller leaves, and an explicit cancel frees the engine within a second; who
    comes back then learns that it was cancelled."""
    with begun(service, LONG) as stream:
        pass
    url = f"{service.url}/v1/streams/{stream.id}"
    with pytest.raises(AssertionError, match="vLLM is not idle after"):
        wait_until(service.is_idle, 1.5, "vLLM is not idle")
    assert httpx.post(f"{url}/cancel").json() == {"id": stream.id, "cancelled": True}
    wait_until(service.is_idle, 1, "vLLM is not idle")
    with httpx.stream("GET", url, headers={"last-event-id": "5"}) as response:
        read(response.iter_text(), stream)
    assert stream.numbers == list(range(1, len(stream.numbers) + 1))
    assert stream.events.pop()["error"]["code"] == "cancelled"
    assert all(event["choices"][0]["finish_reason"] is None for event in stream.events)


def test_cancel_while_it_is_read(service: Service) -> None:
    """An explicit cancel ends the stream for its reader too, with an error event and no [DONE]."""
    with begun(service, LONG) as stream:
        pass
    with httpx.stream("GET", f"{service.url}/v1/streams/{stream.id}?last_event_id=5") as response:
        pieces = response.iter_text()
        read(pieces, stream, 20)
        httpx.post(f"{service.url}/v1/streams/{stream.id}/cancel")
        wait_until(service.is_idle, 1, "vLLM is not idle")
        read(pieces, stream)
    assert stream.events[-1]["error"]["code"] == "cancelled"
