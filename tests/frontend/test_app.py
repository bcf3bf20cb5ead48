"""Routing, ids and log lines."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator

import httpx
import pytest

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, started
from tests.frontend.conftest import Frontend, until
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of


@pytest.mark.parametrize(
    "path",
    [
        "//v1/models",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/v1/models/../../metrics",
        "/v1/models/",
        "/metrics/",
        "/V1/models",
        "/v2/models",
        "/static/",
        "/static/../settings.py",
        "/static/%2e%2e/settings.py",
        "/health",
    ],
)
async def test_unknown_paths(frontend: Frontend, path: str) -> None:
    """A path is taken as it is: tricks lead to 404 with an error object."""
    reader, writer = await frontend.connect()
    writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 404 ")
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHAT, "POST"),
        ("PUT", COMPLETIONS, "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("DELETE", "/v1/models/scripted", "GET, HEAD"),
        ("POST", "/health/live", "GET, HEAD"),
        ("POST", "/", "GET, HEAD"),
    ],
)
async def test_wrong_methods(frontend: Frontend, method: str, path: str, allowed: str) -> None:
    """A wrong method gets 405 with an error object and the right ones."""
    response = await frontend.client.request(method, path)
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    assert method in error_of(response)["message"]


async def test_head(frontend: Frontend) -> None:
    """HEAD is GET without the body."""
    response = await frontend.client.head("/v1/models")
    assert response.status_code == 200
    assert response.content == b""
    assert int(response.headers["content-length"]) > 0


@pytest.mark.parametrize("given", ["abc", "x" * 128, "with space and !~"])
async def test_request_id_is_echoed(frontend: Frontend, service: ScriptedTextService, given: str) -> None:
    """A sound x-request-id comes back on each response and goes through to the text service."""
    headers = {"x-request-id": given}
    for response in (
        await frontend.client.post(CHAT, json=chat(), headers=headers),
        await frontend.client.post(CHAT, json=chat(stream=True), headers=headers),
        await frontend.client.post(CHAT, json={}, headers=headers),
        await frontend.client.get("/nowhere", headers=headers),
        await frontend.client.get("/health/live", headers=headers),
    ):
        assert response.headers["x-request-id"] == given
    assert [request.request_id for request in service.requests] == [given, given]


@pytest.mark.parametrize("given", [None, "", "x" * 129, "tab\there", "é"])
async def test_request_id_is_made(frontend: Frontend, given: str | None) -> None:
    """A missing or unsound x-request-id is replaced by a new one."""
    headers = {} if given is None else {b"x-request-id": given.encode("latin-1")}
    ids = [(await frontend.client.get("/health/live", headers=headers)).headers["x-request-id"] for _ in range(2)]
    assert all(made.startswith("req-") for made in ids)
    assert len(set(ids)) == 2


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        (TRACE, TRACE),
        ("nonsense", ""),
        (TRACE.upper(), ""),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", ""),
        ("ff" + TRACE[2:], ""),
    ],
)
async def test_traceparent(frontend: Frontend, service: ScriptedTextService, given: str, passed_on: str) -> None:
    """A sound traceparent goes through to the text service, another one does not."""
    await frontend.client.post(CHAT, json=chat(), headers={"traceparent": given})
    assert service.requests[0].traceparent == passed_on


async def test_a_fault_of_ours_has_a_fixed_text(frontend: Frontend, service: ScriptedTextService) -> None:
    """What the text service may not send becomes 500 with a fixed text, streaming or not, and the rest goes on."""

    async def broken(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield text_pb2.Delta(text="secret")
        await asyncio.Event().wait()
        yield started(request)

    sound = service.script
    service.script = broken
    for streamed in (False, True):
        response = await frontend.client.post(CHAT, json=chat(stream=streamed))
        assert response.status_code == 500
        assert error_of(response)["type"] == "server_error"
        assert "secret" not in response.text
    service.script = sound
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_metrics(frontend: Frontend) -> None:
    """Requests count by route and status; an unknown path makes no label of its own."""
    await frontend.client.post(CHAT, json=chat())
    await frontend.client.post(CHAT, json=chat(n=0))
    await frontend.client.get("/some/where")
    await frontend.client.get("/v1/models/scripted")
    text = (await frontend.client.get("/metrics")).text
    for line in (
        'streamomni:http_requests_total{route="/v1/chat/completions",status="200"} 1.0',
        'streamomni:http_requests_total{route="/v1/chat/completions",status="400"} 1.0',
        'streamomni:http_requests_total{route="unknown",status="404"} 1.0',
        'streamomni:http_requests_total{route="/v1/models/{name:path}",status="200"} 1.0',
        'streamomni:http_time_to_first_byte_seconds_count{route="/v1/chat/completions"} 2.0',
        "streamomni:http_prompt_tokens_total 3.0",
        "streamomni:http_completion_tokens_total 3.0",
        "streamomni:text_links_connected 1.0",
        "streamomni:generations_active 0.0",
        "streamomni:http_active_streams 0.0",
    ):
        assert line in text


async def test_log_lines(service: ScriptedTextService) -> None:
    """Each request has one line with its id, status and token counts, and no line has any text of it."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(("", "protos")),
        "OMNI_FRONTEND_PORT": "0",
        "OMNI_FRONTEND_TOKENIZERS": f"127.0.0.1:{service.port}",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.frontend", env=environment, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    lines: list[dict[str, object]] = []

    async def read() -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            lines.append(json.loads(line))

    reading = asyncio.create_task(read())
    await until(lambda: {"listening", "link up"} <= {line["event"] for line in lines}, seconds=20)
    url = next(str(line["url"]) for line in lines if line["event"] == "listening")
    async with httpx.AsyncClient(base_url=url) as client:
        for index, request in enumerate(
            (chat("secret"), chat("secret", stream=True), chat("secret", n=0), completion("secret", stop="secret"))
        ):
            path = COMPLETIONS if "prompt" in request else CHAT
            await client.post(path, json=request, headers={"x-request-id": f"id-{index}"})
    process.terminate()
    assert await process.wait() == 0
    await reading
    told = {line["request_id"]: line for line in lines if line["event"] == "request"}
    assert list(told) == ["id-0", "id-1", "id-2", "id-3"]
    for index, path, status, reason in ((0, CHAT, 200, "stop"), (1, CHAT, 200, "stop"), (2, CHAT, 400, None)):
        line = told[f"id-{index}"]
        assert (line["method"], line["path"], line["status"], line["finish_reason"]) == ("POST", path, status, reason)
        assert line["completion_tokens"] == (1 if status == 200 else None)
        assert isinstance(line["duration_ms"], float)
    assert told["id-2"]["error"] == "INVALID_REQUEST"
    assert "secret" not in json.dumps(lines)
