"""WebSockets on the running service: a Python client, and a browser's WebSocket and EventSource."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.e2e.browser import browser_page
from tests.e2e.service import Service, wait_until

LONG = 8000
Message = dict[str, Any]


@pytest.fixture(autouse=True)
def _idle_before(service: Service) -> None:
    wait_until(service.is_idle, 30, "vLLM is not idle before the test")


def open_socket(service: Service) -> ClientConnection:
    """An open WebSocket; leaving its block closes it. It reads whatever comes, so that closing it takes no time."""
    return connect(f"{service.url.replace('http', 'ws', 1)}/v1/stream", proxy=None, max_queue=None)


def asked(service: Service, number: int, max_tokens: int) -> Message:
    """A completion with a seed of its own."""
    sampled = {"temperature": 0.9, "seed": number, "ignore_eos": True, "max_tokens": max_tokens}
    return {"model": service.model, "prompt": [1, 500 + number], **sampled}


def start(socket: ClientConnection, generation_id: str, body: Message) -> None:
    """Start a completion."""
    socket.send(json.dumps({"type": "start", "id": generation_id, "endpoint": "completions", "body": body}))


def until_end(socket: ClientConnection, count: int) -> dict[str, list[Message]]:
    """The messages of each generation, until so many have ended."""
    by_id: dict[str, list[Message]] = {}
    while sum(messages[-1]["type"] in ("done", "error", "cancelled") for messages in by_id.values()) < count:
        message = json.loads(socket.recv(60))
        by_id.setdefault(message["id"], []).append(message)
    return by_id


def sse_chunks(service: Service, body: Message) -> list[Message]:
    """The chunks of a stream over HTTP."""
    text = httpx.post(f"{service.url}/v1/completions", json=body | {"stream": True}, timeout=60).text
    datas = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    assert datas.pop() == "[DONE]"
    return [json.loads(content) for content in datas]


def joined(chunks: list[Message]) -> tuple[str, list[str | None]]:
    """Text and finish reasons; how tokens fall into chunks depends on the machine's load."""
    choices = [chunk["choices"][0] for chunk in chunks]
    return "".join(choice["text"] for choice in choices), [
        choice["finish_reason"] for choice in choices if choice["finish_reason"]
    ]


def test_twenty_generations_beside_each_other(service: Service) -> None:
    """Twenty generations on one socket say what the same requests say over HTTP, each under its own id."""
    bodies = {f"id {number}": asked(service, number, 8 + number) for number in range(20)}
    with open_socket(service) as socket:
        for generation_id, body in bodies.items():
            start(socket, generation_id, body)
        got = until_end(socket, 20)
    with ThreadPoolExecutor(20) as pool:
        plains = list(pool.map(lambda body: sse_chunks(service, body), bodies.values()))
    for generation_id, plain in zip(bodies, plains, strict=True):
        chunks = [message["data"] for message in got[generation_id] if message["type"] == "event"]
        assert joined(chunks) == joined(plain)
        assert {tuple(chunk) for chunk in chunks} == {tuple(chunk) for chunk in plain}
        assert got[generation_id][-1]["type"] == "done"


def test_cancel_by_id(service: Service) -> None:
    """Cancelling by id frees the engine within a second; another generation of the socket goes on to its end."""
    with open_socket(service) as socket:
        for number in range(4):
            start(socket, str(number), asked(service, number, LONG))
        wait_until(lambda: service.engine_metric("vllm:num_requests_running") == 4, 20, "not all run")
        start(socket, "short", asked(service, 4, 30))
        for number in range(4):
            socket.send(json.dumps({"type": "cancel", "id": str(number)}))
        got = until_end(socket, 5)
        wait_until(service.is_idle, 1, "vLLM is not idle")
    assert {messages[-1]["type"] for generation_id, messages in got.items() if generation_id != "short"} == {
        "cancelled"
    }
    assert got["short"][-1]["type"] == "done"


def test_closing_cancels_all(service: Service) -> None:
    """Closing a socket frees the engine of all that ran on it within a second."""
    with open_socket(service) as socket:
        for number in range(4):
            start(socket, str(number), asked(service, number, LONG))
        wait_until(lambda: service.engine_metric("vllm:num_requests_running") == 4, 20, "not all run")
        began = time.monotonic()
    assert time.monotonic() - began < 1
    wait_until(service.is_idle, 1, "vLLM is not idle")


_WEBSOCKET = """
async ([body]) => {
  const socket = new WebSocket(location.origin.replace("http", "ws") + "/v1/stream", ["streamomni.v1"]);
  const messages = [];
  await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send(JSON.stringify({type: "start", id: "a", endpoint: "completions", body}));
    socket.onmessage = (message) => {
      messages.push(JSON.parse(message.data));
      if (messages.at(-1).type === "done") resolve();
    };
    socket.onclose = (event) => reject(new Error(`closed: ${event.code} ${event.reason}`));
  });
  return [socket.protocol, messages];
}
"""
_EVENT_SOURCE = """
async ([body]) => {
  const headers = {"content-type": "application/json"};
  const asked = {method: "POST", headers, body: JSON.stringify(body)};
  const answer = await fetch("/v1/completions", asked);
  const id = answer.headers.get("x-stream-id");
  await answer.body.cancel();
  const source = new EventSource(`/v1/streams/${id}`);
  const events = [];
  await new Promise((resolve) => {
    source.onmessage = (event) => {
      if (event.data === "[DONE]") resolve();
      else events.push([Number(event.lastEventId), JSON.parse(event.data)]);
    };
  });
  // It opens the stream again by itself, and is told that there is no more.
  await new Promise((resolve) => { source.onerror = () => { if (source.readyState === 2) resolve(); }; });
  return events;
}
"""


def test_a_browser(service: Service) -> None:
    """In a real browser, on the service's own page, a WebSocket says what HTTP says; a stream whose fetch was cancelled
    is picked up by EventSource, which ends by itself when the stream is over."""
    body = asked(service, 3, 20)
    plain = sse_chunks(service, body)
    with browser_page() as page:
        page.goto(service.url)
        protocol, messages = page.evaluate(_WEBSOCKET, [body])
        resumable = body | {"stream": True, "stream_options": {"resumable": True}}
        events = page.evaluate(_EVENT_SOURCE, [resumable])
    assert protocol == "streamomni.v1"
    assert joined([message["data"] for message in messages if message["type"] == "event"]) == joined(plain)
    assert [number for number, _ in events] == list(range(1, len(events) + 1))
    assert joined([chunk for _, chunk in events]) == joined(plain)
