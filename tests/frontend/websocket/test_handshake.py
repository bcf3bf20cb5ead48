"""Who may open a WebSocket, and how others are refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import structlog
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter, until
from tests.frontend.requests import chat, texts
from tests.frontend.steps import Steps
from tests.frontend.websocket.bare import VALID
from tests.frontend.websocket.sockets import chunks, open_socket

KEY, OTHER = "so-5e0c7b1f9a3d48e2", "so-a-second-key"
KEYS = {
    "none": ({}, []),
    "wrong header": ({"Authorization": "Bearer so-wrong"}, []),
    "wrong subprotocol": ({}, ["bearer.so-wrong"]),
    "empty subprotocol": ({}, ["bearer."]),
    "another subprotocol": ({}, [KEY]),
    "two keys": ({"Authorization": f"Bearer {KEY}"}, [f"bearer.{KEY}"]),
    "in the query": ({}, ["streamomni.v1"]),
}


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    """A file with two keys."""
    path = tmp_path / "keys"
    path.write_text(f"{KEY}\n{OTHER}\n")
    return path


@pytest.fixture
async def locked(start: Starter, keys_file: Path) -> Frontend:
    """A frontend that asks for a key."""
    return await start(api_keys_file=keys_file)


def origin_of(frontend: Frontend) -> str:
    """The origin of a page that the frontend itself serves."""
    return frontend.url


async def refusal(frontend: Frontend, **given: Any) -> tuple[int, dict[str, Any]]:
    """The status and error object that refuse a handshake."""
    with pytest.raises(InvalidStatus) as refused:
        async with open_socket(frontend, **given):
            pass
    response = refused.value.response
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    error: dict[str, Any] = json.loads(response.body)["error"]
    return response.status_code, error


@pytest.mark.parametrize(("headers", "subprotocols"), KEYS.values(), ids=KEYS.keys())
async def test_wrong_keys(
    locked: Frontend, service: ScriptedTextService, headers: dict[str, str], subprotocols: list[Any]
) -> None:
    """Without an accepted key the handshake gets 401 with an error object; a browser, whose pages see no status, is
    told the reason with code 1008. The key is in no log line."""
    given = {"additional_headers": headers, "subprotocols": subprotocols or None}
    with structlog.testing.capture_logs() as lines:
        status, error = await refusal(locked, **given)
        assert (status, error["code"]) == (401, "invalid_api_key")
        async with open_socket(locked, origin=origin_of(locked), **given) as socket:
            with pytest.raises(ConnectionClosedError) as closed:
                await socket.next()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, error["message"][:123])
    assert KEY not in repr(lines) and "so-wrong" not in repr(lines)
    assert service.requests == []


@pytest.mark.parametrize(
    ("headers", "subprotocols", "taken"),
    [
        ({"Authorization": f"Bearer {KEY}"}, None, None),
        ({"Authorization": f"Bearer {KEY}"}, ["other"], None),
        ({}, [f"bearer.{KEY}"], f"bearer.{KEY}"),
        ({}, ["streamomni.v1", f"bearer.{OTHER}"], "streamomni.v1"),
        ({}, ["other", f"bearer.{OTHER}", "streamomni.v1"], "streamomni.v1"),
    ],
)
async def test_right_keys(
    locked: Frontend, headers: dict[str, str], subprotocols: list[Any] | None, taken: str | None
) -> None:
    """A key is taken from the header, or from a subprotocol, where browsers can put it; the subprotocol's own name is
    preferred as the one that is answered."""
    given: dict[str, Any] = {"additional_headers": headers, "subprotocols": subprotocols}
    for origin in (None, origin_of(locked)):
        async with open_socket(locked, origin=origin, **given) as socket:
            assert socket.connection.subprotocol == taken
            await socket.start("a", "one two")
            assert texts(chunks(await socket.until("done"))) == "one two "


async def test_a_key_that_is_taken_out(
    locked: Frontend, keys_file: Path, service: ScriptedTextService, steps: Steps
) -> None:
    """Once its key is not accepted any more, an open socket starts nothing: it is closed with 1008, and what runs on it
    ends."""
    async with open_socket(locked, additional_headers={"Authorization": f"Bearer {KEY}"}) as socket:
        await socket.start("a")
        await until(lambda: service.live == 1)
        await asyncio.to_thread(keys_file.write_text, f"{OTHER}\n")
        await asyncio.sleep(2.5)
        await socket.start("b")
        assert await socket.close_code() == 1008
        await until(lambda: service.live == 0, seconds=1)


async def test_owners(locked: Frontend, service: ScriptedTextService, steps: Steps) -> None:
    """Only the key that opened the socket can cancel its generations over HTTP."""
    mine, other = ({"Authorization": f"Bearer {key}"} for key in (KEY, OTHER))
    async with open_socket(locked, subprotocols=[f"bearer.{KEY}"]) as socket:
        await socket.start("a")
        path = f"/v1/streams/{(await socket.next())['stream_id']}/cancel"
        assert (await locked.client.post(path, headers=other)).status_code == 404
        assert (await locked.client.post(path, headers=mine)).json()["cancelled"] is True
        await socket.until("cancelled")


async def test_the_name_of_a_key(start: Starter, keys_file: Path, service: ScriptedTextService) -> None:
    """The text service, whose filters know callers by it, is told the name of the socket's key."""
    await asyncio.to_thread(keys_file.write_text, f"desk: {KEY}\n")
    frontend = await start(api_keys_file=keys_file)
    async with open_socket(frontend, subprotocols=[f"bearer.{KEY}"]) as socket:
        await socket.start("a")
        await socket.until("done")
    assert [request.caller for request in service.requests] == ["desk"]


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:PORT",
        "127.0.0.1:PORT",
    ],
)
async def test_other_origins(frontend: Frontend, service: ScriptedTextService, origin: str) -> None:
    """A page that came from elsewhere may not open a WebSocket: 403 with an error object."""
    status, error = await refusal(frontend, origin=origin.replace("PORT", str(frontend.port)))
    assert (status, error["type"], error["code"]) == (403, "permission_error", "origin_not_allowed")
    assert service.requests == []


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:PORT", "127.0.0.1:PORT"),
        ("https://chat.example", "chat.example"),
        ("https://chat.example", "chat.example:443"),
        ("http://Chat.Example:80", "chat.example"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
async def test_own_origins(frontend: Frontend, origin: str, host: str) -> None:
    """A page that came from the host that the socket is opened to may open it, whichever way the host is spelt."""
    port = str(frontend.port)
    lines = [
        "GET /v1/stream?x=1 HTTP/1.1",
        f"host: {host.replace('PORT', port)}",
        f"origin: {origin.replace('PORT', port)}",
        "connection: keep-alive, Upgrade",
        "upgrade: WebSocket",
        "sec-websocket-version: 13",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    assert await first_line(frontend, lines) == b"HTTP/1.1 101 Switching Protocols\r\n"


BAD_HANDSHAKES = {
    "no key": ([line for line in VALID if "-key" not in line], 400),
    "short key": ([*VALID[:-1], "sec-websocket-key: abc"], 400),
    "no version": ([line for line in VALID if "version" not in line], 400),
    "old version": ([line.replace("13", "8") for line in VALID], 400),
    "long header": ([*VALID, "x-long: " + "a" * 9000], 431),
    "many headers": ([*VALID, *(f"x-{number}: a" for number in range(150))], 431),
    "headers beyond the limit": ([*VALID, *(f"x-{number}: {'a' * 1500}" for number in range(100))], 431),
    "POST": (["POST /v1/stream HTTP/1.1", *VALID[1:]], 405),
    "HTTP/1.0": (["GET /v1/stream HTTP/1.0", *VALID[1:]], 426),
    "another path": (["GET /v1/streams HTTP/1.1", *VALID[1:]], 404),
    "path spelt in another way": (["GET /v1/%73tream HTTP/1.1", *VALID[1:]], 426),
    "another protocol": ([line.replace("websocket", "h2c") if "upgrade:" in line else line for line in VALID], 426),
    "with a body": ([*VALID, "content-length: 5"], 400),
}


async def test_bad_handshakes(frontend: Frontend) -> None:
    """What is no valid handshake gets an error object and its status."""
    for name, (lines, status) in BAD_HANDSHAKES.items():
        reader, writer = await frontend.connect()
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(5):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 %d " % status), name
            body = await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r")[0]))
        writer.close()
        assert b"content-type: application/json" in head and b"x-request-id: " in head, name
        assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}, name


async def test_who_speaks_before_the_answer(frontend: Frontend) -> None:
    """Messages sent with the handshake are not taken, and the service goes on."""
    _, writer = await frontend.connect()
    writer.write("\r\n".join([*VALID, "", ""]).encode() + b"\x89\x80\x00\x00\x00\x00" * 10)
    await asyncio.sleep(0.1)
    writer.close()
    async with open_socket(frontend) as socket:
        await socket.send({"type": "ping"})
        assert await socket.next() == {"type": "pong"}


async def test_extensions(frontend: Frontend) -> None:
    """Compression is not taken up: a small message could unpack to a large one."""
    async with open_socket(frontend, extensions=None) as socket:
        assert socket.connection.protocol.extensions == []
    lines = [*VALID, "sec-websocket-extensions: permessage-deflate; client_max_window_bits"]
    assert b"extensions" not in await head_of(frontend, lines)


async def test_chats_of_a_page(frontend: Frontend) -> None:
    """A socket serves requests as they are over HTTP, when a page of this service opens it without keys."""
    async with open_socket(frontend, origin=origin_of(frontend)) as socket:
        await socket.send({"type": "start", "id": 'é\n"', "endpoint": "chat.completions", "body": chat("ünï")})
        assert texts(chunks(await socket.until("done"))) == "ünï "


async def first_line(frontend: Frontend, lines: list[str]) -> bytes:
    """The first line that a bare request gets."""
    return (await head_of(frontend, lines)).split(b"\n")[0] + b"\n"


async def head_of(frontend: Frontend, lines: list[str]) -> bytes:
    """The head of the answer that a bare request gets."""
    reader, writer = await frontend.connect()
    writer.write("\r\n".join([*lines, "", ""]).encode())
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head
