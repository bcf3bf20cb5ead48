from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from services.frontend import direct_body
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Frontend
from tests.frontend.requests import CHAT, chat, events, texts

# Several times what the kernel buffers of a small socket and the server's transport hold together.
PIECES, PIECE = 60, "0123456789" * 300


@pytest.mark.parametrize("choices", [1, 3])
async def test_a_reader_that_pauses_misses_nothing(
    frontend: Frontend, service: ScriptedTextService, choices: int
) -> None:
    """Events written at once and events that waited for the reader arrive whole and in order."""
    read_some, pieces = asyncio.Event(), PIECES // choices

    async def script(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        for number in range(pieces):
            for index in range(choices):
                yield text_pb2.Delta(index=index, token_ids=[number], text=f"{number}:{PIECE}")
            if number == pieces - 10:
                read_some.set()
            await asyncio.sleep(0.002)
        for index in range(choices):
            yield finished(pieces, index)

    service.script = script
    with socket.socket() as client:
        # A small window, so that the server's writes are held up.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        url = httpx.URL(frontend.url)
        await loop.sock_connect(client, (url.host, url.port))
        body = json.dumps(chat(stream=True, n=choices)).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n"
        await loop.sock_sendall(client, head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        await read_some.wait()
        received = b""
        async with asyncio.timeout(20):
            while piece := await loop.sock_recv(client, 65536):
                received += piece
    told = events(_unchunked(received).decode())
    for index in range(choices):
        assert texts(told, index) == "".join(f"{number}:{PIECE}" for number in range(pieces))
    assert told[-1] == "[DONE]"


def _unchunked(response: bytes) -> bytes:
    """The body of a response in chunks."""
    rest = response.partition(b"\r\n\r\n")[2]
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        if length == 0:
            return body
        body += rest[:length]
        assert rest[length : length + 2] == b"\r\n"
        rest = rest[length + 2 :]


@pytest.mark.parametrize("choices", [1, 2])
def test_choices_are_written_together_where_the_server_can(choices: int) -> None:
    """An answer of several choices takes the function that gathers a pass; a server without one gives its only one."""
    plain: list[bytes] = []
    gathered: list[bytes] = []

    def write(body: bytes) -> bool:
        plain.append(body)
        return True

    def gather(body: bytes) -> bool:
        gathered.append(body)
        return True

    scope: dict[str, Any] = {}
    direct_body.offer(scope, write, gather)
    for body in (b"a", b"b"):
        assert direct_body.write_now_of(scope, choices)(body)
    assert (plain, gathered) == (([b"a", b"b"], []) if choices == 1 else ([], [b"a", b"b"]))
    direct_body.offer(scope, write)
    assert direct_body.write_now_of(scope, choices) is write
    assert not direct_body.write_now_of({}, choices)(b"a")
