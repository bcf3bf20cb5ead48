"""Bad input against the running service: each kind gets its error in time, and nobody else notices."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.service import Service, wait_until
from tests.e2e.tiny.bad_inputs import ANY_CODE, BadInput, bad_inputs
from tests.frontend.requests import CHAT, COMPLETIONS

SECONDS = 1.0
TIERS = ("services.frontend", "services.tokenizer", "services.engine", "VLLM::EngineCore", "VLLM::Worker")
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
STREAMS: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"messages": [{"role": "user", "content": "Tell me"}], "temperature": 0, "max_tokens": 150, **USAGE}),
    (COMPLETIONS, {"prompt": "Once upon", "temperature": 0, "max_tokens": 200, "stop": ["\n\n"], **USAGE}),
    (COMPLETIONS, {"prompt": [5, 6, 7], "seed": 11, "temperature": 1, "max_tokens": 120, **USAGE}),
]
COUNTERS = ("vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total")
RARE = ("streamomni:generations_cancelled_total", "streamomni:engine_restarts_total")


def connect(service: Service) -> http.client.HTTPConnection:
    """A connection to the frontend."""
    address = urlsplit(service.url)
    assert address.hostname is not None
    return http.client.HTTPConnection(address.hostname, address.port, timeout=60)


class Refusals:
    """Sends bad input and checks what comes, over one connection as long as the service keeps it."""

    def __init__(self, service: Service) -> None:
        self._connection = connect(service)

    def fault(self, bad: BadInput) -> str | None:
        """What is wrong with the answer, None if nothing is. A busy machine adds time: the best of three counts."""
        times: list[float] = []
        while not times or (min(times) >= SECONDS and len(times) < 3):
            begin = time.monotonic()
            self._connection.request(bad.method, bad.path, bad.content, dict(bad.headers))
            response = self._connection.getresponse()
            content = response.read()
            times.append(time.monotonic() - begin)
            if not is_right(bad, response, content):
                return f"{bad.name}: {response.status} {content[:300]!r}, not {bad.status} {bad.param} {bad.code}"
        return None if min(times) < SECONDS else f"{bad.name}: took {times} s"


def is_right(bad: BadInput, response: http.client.HTTPResponse, content: bytes) -> bool:
    """Whether an answer is the error that it should be, whole, and nothing of an event stream."""
    if (response.status, response.headers["content-type"]) != (bad.status, "application/json"):
        return False
    body = json.loads(content)
    error = body.pop("error")
    shape = body == {} and set(error) == {"message", "type", "param", "code"} and bool(response.headers["x-request-id"])
    text = bool(error["message"]) and "\n" not in error["message"]
    param = error["param"]
    if bad.code == ANY_CODE:
        # The row names the field; the error may name a part of it.
        return shape and text and param is not None and re.split(r"[.\[]", param)[0] == bad.param
    return shape and text and (error["type"], param, error["code"]) == ("invalid_request_error", bad.param, bad.code)


def stream_bytes(service: Service, path: str, fields: dict[str, Any]) -> bytes:
    """All bytes of a stream but its id and time."""
    connection = connect(service)
    body = json.dumps({"model": service.model, "ignore_eos": True, **fields})
    connection.request("POST", path, body, {"content-type": "application/json"})
    content = connection.getresponse().read()
    connection.close()
    assert content.endswith(b"data: [DONE]\n\n"), content[-300:]
    content = re.sub(rb'"id":"[^"]*"', b'"id":""', content)
    return re.sub(rb'"created":\d+', b'"created":0', content)


class OtherStreams:
    """Streams that run again and again while something else happens."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(number,)) for number in range(len(STREAMS))]
        self.alone = [stream_bytes(service, path, fields) for path, fields in STREAMS]
        self.meanwhile: Counter[tuple[int, bytes]] = Counter()

    def __enter__(self) -> OtherStreams:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, number: int) -> None:
        while not self._over.is_set():
            self.meanwhile[number, stream_bytes(self._service, *STREAMS[number])] += 1


@pytest.fixture(scope="module")
def slow_head(service: Service) -> Iterator[tuple[socket.socket, float]]:
    """A connection whose headers never end, and when it began; it waits while other tests run."""
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-slow: ")
        yield connection, time.monotonic()


def state_of(service: Service) -> dict[str, list[int]]:
    """The process ids of each tier."""
    return {title: service.process_ids(title) for title in TIERS}


@pytest.mark.usefixtures("slow_head")
def test_all_kinds_while_others_stream(service: Service) -> None:
    """Each row, streaming and not, has its status and error object within 1 s and before anything of a stream;
    streams that run meanwhile have byte for byte what they have alone; the same processes run, and the engine has
    counted these streams and nothing else."""
    processes = state_of(service)
    assert all(processes.values())
    others = OtherStreams(service)
    wait_until(service.is_idle, 5, "vLLM is not idle")
    before = {name: service.engine_metric(name) for name in (*COUNTERS, *RARE)}
    refusals = Refusals(service)
    with others:
        rows = [*bad_inputs(service.model, stream=False), *bad_inputs(service.model, stream=True)]
        faults = [fault for bad in rows if (fault := refusals.fault(bad))]
    assert not faults, "\n".join(faults)
    assert set(others.meanwhile) == set(enumerate(others.alone))
    ended, prompt_tokens, completion_tokens = 0, 0, 0
    for (_, content), times in others.meanwhile.items():
        usage = json.loads(content.split(b"data: ")[-2])["usage"]
        ended += times
        prompt_tokens += times * usage["prompt_tokens"]
        completion_tokens += times * usage["completion_tokens"]
    wait_until(service.is_idle, 5, "vLLM is not idle")
    grown = {name: service.engine_metric(name) - value for name, value in before.items()}
    assert [grown[name] for name in COUNTERS] == [ended, prompt_tokens, completion_tokens]
    # Each prompt of a list is a generation of its own: the right one beside the wrong one may have begun, and is
    # cancelled. There is one such list, streamed and not.
    assert grown["streamomni:generations_cancelled_total"] <= 2
    assert grown["streamomni:engine_restarts_total"] == 0
    assert state_of(service) == processes


def test_parts_are_never_fetched(service: Service) -> None:
    """A part that is not text is refused, and no connection is opened to where it lies."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        refusals = Refusals(service)
        for kind in ("image_url", "video_url", "audio_url"):
            content = [{"type": kind, kind: {"url": url}}]
            body = {"model": service.model, "messages": [{"role": "user", "content": content}]}
            param = "messages[0].content[0]"
            bad = BadInput(kind, CHAT, json.dumps(body).encode(), param, "unsupported")
            assert refusals.fault(bad) is None
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_five_megabytes_of_headers(service: Service) -> None:
    """They are refused with 431 and an error object before they have all come, and the connection is closed."""
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port), timeout=5) as connection:
        head = b"GET /v1/models HTTP/1.1\r\nhost: x\r\nx-large: " + b"x" * 5_000_000 + b"\r\n\r\n"
        sending = threading.Thread(target=_send, args=(connection, head))
        sending.start()
        answer = _read_to_end(connection)
        sending.join()
    assert answer.startswith(b"HTTP/1.1 431 ") and b'"code":"headers_too_large"' in answer
    # What came after the answer may have reset the connection; another one is served.
    assert Refusals(service).fault(BadInput("after", "/nothing", b"", status=404, method="GET")) is None


def test_slow_headers(slow_head: tuple[socket.socket, float]) -> None:
    """Headers that do not come whole within 15 s get 408 with an error object, and the connection is closed."""
    connection, began = slow_head
    connection.settimeout(20)
    answer = _read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 408 ") and b'"code":"request_timeout"' in answer
    assert time.monotonic() - began < 60


def _send(connection: socket.socket, content: bytes) -> None:
    try:
        connection.sendall(content)
    except OSError:
        # Refused and closed before the end.
        return


def _read_to_end(connection: socket.socket) -> bytes:
    answer = b""
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionResetError:
        assert answer
    return answer
