"""Large and awkward texts on the running service take linear time, and another stream does not notice."""

from __future__ import annotations

import random
import string
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.e2e.service import Service, wait_until

# Of a stream's chunks while nothing else runs it is 10 to 60 ms here.
LONGEST_PAUSE = 0.3
TRIES = 3


def letters(count: int) -> str:
    """Letters at random without any space."""
    return "".join(random.Random(count).choices(string.ascii_letters, k=count))


TEXTS = {
    "a megabyte without a space": letters(1_000_000),
    "one character": "a" * 200_000,
    "newlines": "\n" * 200_000,
    "combining marks": "e" + "\u0301\u0323" * 100_000,
    "the edges of control tokens": "<|" * 100_000,
}


class Watch:
    """Another stream, and the longest time between two of its pieces."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.pieces = 0
        self.began = threading.Event()
        self.over = threading.Event()

    def read(self, service: Service) -> None:
        """Read a long stream until `over`."""
        body = {"model": service.model, "prompt": [1, 500], "max_tokens": 8000, "ignore_eos": True, "stream": True}
        with httpx.stream("POST", f"{service.url}/v1/completions", json=body, timeout=60) as response:
            last = None
            for _ in response.iter_raw():
                now = time.monotonic()
                if last is not None:
                    self.longest, self.pieces = max(self.longest, now - last), self.pieces + 1
                last = now
                self.began.set()
                if self.over.is_set():
                    return
        raise AssertionError("the stream ended too early")


@contextmanager
def watched(service: Service) -> Iterator[Watch]:
    """Run a stream beside the block."""
    watch = Watch()
    reading = threading.Thread(target=watch.read, args=[service])
    reading.start()
    try:
        assert watch.began.wait(30)
        yield watch
    finally:
        watch.over.set()
        reading.join()


def refused(service: Service, text: str, *, chat: bool) -> float:
    """Send a text that is longer than the context; the seconds until it is refused for that."""
    path, prompt = ("chat/completions", "messages") if chat else ("completions", "prompt")
    value = [{"role": "user", "content": text}] if chat else text
    begin = time.monotonic()
    response = httpx.post(f"{service.url}/v1/{path}", json={"model": service.model, prompt: value}, timeout=60)
    took = time.monotonic() - begin
    assert response.status_code == 400, response.text[:200]
    assert response.json()["error"]["code"] == "context_length_exceeded"
    return took


@pytest.mark.parametrize("name", TEXTS)
def test_other_streams_are_undisturbed(service: Service, name: str) -> None:
    """While such a text is taken, encoded and refused, as a prompt and in a chat, another stream flows on."""
    pauses = []
    for _ in range(TRIES):
        with watched(service) as watch:
            for chat in (False, True):
                assert refused(service, TEXTS[name], chat=chat) < 5
            # A quick refusal leaves it no time for more than a piece.
            wait_until(lambda: watch.pieces > 10, 10, "the other stream stands still")
        pauses.append(watch.longest)
        if pauses[-1] < LONGEST_PAUSE:
            return
    raise AssertionError(f"{name}: another stream paused for {min(pauses):.2f} s")


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_the_time_is_linear(service: Service, name: str, chat: bool) -> None:
    """Four times the text takes about four times as long, from the first byte of the request to its refusal."""
    text = TEXTS[name]
    short, whole = (
        min(refused(service, text[: len(text) // parts], chat=chat) for _ in range(TRIES)) for parts in (4, 1)
    )
    # Quadratic work would take sixteen times as long; a few milliseconds are noisy.
    assert whole < 10 * short + 0.1
