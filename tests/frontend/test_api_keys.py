"""API keys: who is served, and what the others learn."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import openai
import pytest
import structlog

from services.chassis.errors import Unauthenticated
from services.chassis.settings import SettingsError
from services.frontend.api_keys import ApiKeys
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter, running_frontend, until_ready
from tests.frontend.requests import CHAT, chat, error_of, events, texts

KEY = "so-5e0c7b1f9a3d48e2"
OTHER = "so-a-second-key"
GOOD = {"authorization": f"Bearer {KEY}"}

WRONG = {
    "none": None,
    "empty": b"",
    "scheme alone": b"Bearer",
    "basic": b"Basic " + KEY.encode(),
    "key alone": KEY.encode(),
    "last character": f"Bearer {KEY[:-1]}3".encode(),
    "one more": f"Bearer {KEY}0".encode(),
    "one less": f"Bearer {KEY[:-1]}".encode(),
    "other case": f"Bearer {KEY.upper()}".encode(),
    "two keys": f"Bearer {KEY} {OTHER}".encode(),
    "list": f"Bearer {KEY},{OTHER}".encode(),
    "comment of the file": b"Bearer # people",
    "64 KB": b"Bearer " + b"k" * 65536,
    "SQL": b"Bearer ' OR '1'='1' --",
    "latin-1": b"Bearer so-\xe9\xff",
    "UTF-8": "Bearer so-ключ".encode(),
    "zero width": f"Bearer {KEY}\u200b".encode(),
}


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    """A file with two keys."""
    path = tmp_path / "keys"
    path.write_text(f"# people\n{KEY}\n\n  {OTHER}  \r\n")
    return path


@pytest.fixture
async def locked(start: Starter, keys_file: Path) -> Frontend:
    """A frontend that asks for a key."""
    return await start(api_keys_file=keys_file)


async def status_line(frontend: Frontend, request: bytes) -> bytes:
    """The first line that a bare request gets."""
    reader, writer = await frontend.connect()
    writer.write(request)
    async with asyncio.timeout(5):
        line = await reader.readline()
    writer.close()
    return line


@pytest.mark.parametrize("sent", WRONG.values(), ids=WRONG.keys())
async def test_wrong_keys(locked: Frontend, service: ScriptedTextService, sent: bytes | None) -> None:
    """No key and every wrong one get 401 with OpenAI's error object; the key is in no answer and no log line, and the
    text service hears nothing."""
    headers = [] if sent is None else [(b"Authorization", sent)]
    with structlog.testing.capture_logs() as lines:
        response = await locked.client.post(CHAT, json=chat(), headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    error = error_of(response)
    assert (error["type"], error["code"], error["param"]) == ("authentication_error", "invalid_api_key", None)
    assert "Authorization: Bearer KEY" in error["message"]
    shown = response.text + repr(lines)
    assert [line["status"] for line in lines if line["event"] == "request"] == [401]
    for secret in (KEY, OTHER, KEY[:-1], "1'='1", "kkkkkk"):
        assert secret not in shown
    assert service.requests == []


async def test_two_authorizations(locked: Frontend) -> None:
    """A request with two authorizations is refused, even if one of them is right: others may read the other one."""
    twice = [("authorization", f"Bearer {KEY}"), ("authorization", "Bearer other")]
    assert (await locked.client.get("/v1/models", headers=twice)).status_code == 401


@pytest.mark.parametrize("value", [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER  {KEY}", f"Bearer {OTHER}"])
async def test_right_keys(locked: Frontend, value: str) -> None:
    """Each key of the file is served, streamed and not; the scheme's case does not matter (RFC 9110)."""
    headers = {"authorization": value}
    assert (await locked.client.get("/v1/models", headers=headers)).status_code == 200
    whole = await locked.client.post(CHAT, json=chat("a b"), headers=headers)
    streamed = await locked.client.post(CHAT, json=chat("a b", stream=True), headers=headers)
    assert texts(events(streamed.text)) == whole.json()["choices"][0]["message"]["content"] != ""


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "/v1/models/scripted",
        "//v1/models",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/health/../v1/models",
        "/static/../v1/models",
        "/static/../metrics",
        "/health/live/../../metrics",
        "/v1%2Fmodels",
        "/v1/models?x=/health/live",
        "/v1/models%00",
        "/health/live%0a",
        "/metrics",
        "/metrics/",
        "/nowhere",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
async def test_no_path_evades_the_key(locked: Frontend, path: str, method: str) -> None:
    """However a path is spelt, and whether it exists or not, it answers 401 without a key."""
    request = f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".encode()
    assert (await status_line(locked, request)).startswith(b"HTTP/1.1 401 ")


async def test_open_paths(locked: Frontend) -> None:
    """Probes, the page with its files and the API's description need no key; metrics are given to one."""
    for path in ("/health/live", "/health/ready", "/", "/static/js/app.js", "/static/styles/base.css", "/openapi.json"):
        assert (await locked.client.get(path)).status_code == 200, path
    assert (await locked.client.get("/metrics", headers=GOOD)).status_code == 200
    assert (await locked.client.get("/nowhere", headers=GOOD)).status_code == 404


async def test_refused_before_the_body(locked: Frontend) -> None:
    """The answer does not wait for the body, however large it says that it is."""
    head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n".encode()
    for length in (1000, 27_000_000):
        request = head + f"content-length: {length}\r\nexpect: 100-continue\r\n\r\n".encode()
        assert (await status_line(locked, request)).startswith(b"HTTP/1.1 401 ")


async def test_openai_client(locked: Frontend) -> None:
    """OpenAI's client raises its own authentication error, at once and without another try."""
    for key, served in (("sk-wrong", False), (KEY, True)):
        async with openai.AsyncOpenAI(base_url=f"{locked.url}/v1", api_key=key) as client:
            if served:
                assert [model.id async for model in client.models.list()] == ["scripted"]
            else:
                with pytest.raises(openai.AuthenticationError) as refusal:
                    await client.models.list()
                assert refusal.value.code == "invalid_api_key"


def test_time_tells_nothing(keys_file: Path) -> None:
    """A key that differs in its last character takes as long as one that differs in all: within a fifth."""
    keys_file.write_text("\n".join(f"{KEY}{number}{'x' * 400}" for number in range(20)))
    keys = ApiKeys(keys_file)
    near = f"Bearer {KEY}0{'x' * 399}y".encode()
    far = b"Bearer " + b"z" * (len(near) - 7)

    def seconds(value: bytes) -> float:
        began = time.perf_counter()
        for _ in range(50):
            with pytest.raises(Unauthenticated):
                keys.check([(b"authorization", value)])
        return time.perf_counter() - began

    ratios = []
    for _ in range(5):
        pairs = [(seconds(near), seconds(far)) for _ in range(9)]
        ratios.append(statistics.median(one for one, _ in pairs) / statistics.median(other for _, other in pairs))
    assert min(abs(ratio - 1) for ratio in ratios) < 0.2, ratios


async def test_changes_are_taken_over(locked: Frontend, keys_file: Path) -> None:
    """A key that is taken out is refused and a new one served within seconds, without a restart; while the file is
    wrong, the keys stay as they were, and that is told once."""

    async def status(key: str) -> int:
        response = await locked.client.get("/v1/models", headers={"authorization": f"Bearer {key}"})
        return response.status_code

    with structlog.testing.capture_logs() as lines:
        await asyncio.to_thread(keys_file.write_text, "no key at all\n")
        await asyncio.sleep(2.5)
        assert [await status(KEY), await status(OTHER)] == [200, 200]
        await asyncio.to_thread(keys_file.write_text, "so-new\n")
        async with asyncio.timeout(5):
            while await status("so-new") != 200:  # noqa: ASYNC110 - it is behind a socket
                await asyncio.sleep(0.1)
    assert [await status(KEY), await status(OTHER)] == [401, 401]
    told = [line for line in lines if line["log_level"] == "error"]
    assert len(told) == 1 and "no key at all" not in repr(lines) and "so-new" not in repr(lines)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"", "holds no key"),
        (b"# so-a\n\n", "holds no key"),
        (b"so-a\nso b\n", "line 2 of"),
        (b"so-a # people\n", "line 1 of"),
        (b"so-\xc3\xa9\n", "line 1 of"),
        (b"so-\x00\n", "line 1 of"),
        (b"s" * 513, "line 1 of"),
    ],
)
async def test_wrong_files(tmp_path: Path, content: bytes | None, message: str) -> None:
    """A file that is missing, empty or holds what is no key ends the start with one line, which tells no key."""
    path = tmp_path / "keys"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=message) as refusal:
        async with running_frontend(1, api_keys_file=path):
            pass
    text = str(refusal.value)
    assert str(path) in text and "\n" not in text and "so-" not in text


@pytest.mark.parametrize(
    ("host", "keyed", "warned"), [("127.0.0.1", False, 0), ("0.0.0.0", False, 1), ("0.0.0.0", True, 0)]
)
async def test_open_services_are_warned_of(
    service: ScriptedTextService, keys_file: Path, host: str, keyed: bool, warned: int
) -> None:
    """Without keys, all is served, and one line warns if other machines reach it."""
    settings = {"host": host} | ({"api_keys_file": keys_file} if keyed else {})
    with structlog.testing.capture_logs() as lines:
        async with running_frontend(service.port, **settings) as frontend:
            await until_ready(frontend)
            assert (await frontend.client.get("/v1/models")).status_code == (401 if keyed else 200)
    warnings = [line["event"] for line in lines if line["log_level"] == "warning" and "API keys" in line["event"]]
    assert len(warnings) == warned
    assert all("OMNI_FRONTEND_API_KEYS_FILE" in warning for warning in warnings)


async def test_description(locked: Frontend, service: ScriptedTextService) -> None:
    """The API's description asks for a bearer token exactly where the service does."""
    described = (await locked.client.get("/openapi.json")).json()
    assert described["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}
    assert described["security"] == [{"bearer": []}]
    async with running_frontend(service.port) as frontend:
        described = (await frontend.client.get("/openapi.json")).json()
        assert "security" not in described and "securitySchemes" not in described["components"]
