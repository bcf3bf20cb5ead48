"""HTTPS, and TLS to the text services."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import structlog
from websockets import Origin
from websockets.asyncio.client import connect

from services.chassis.settings import SettingsError
from services.chassis.tls import GrpcTlsSettings
from streamomni.text.v1 import text_pb2
from tests.certificates import Authority
from tests.fakes.scripted_text_service import Event, ScriptedTextService, started
from tests.frontend.conftest import Frontend, running_frontend, until, until_ready
from tests.frontend.requests import CHAT, chat, events, texts


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Signs what the tests show and trusts."""
    return Authority(tmp_path)


@asynccontextmanager
async def secure_frontend(
    service: ScriptedTextService, authority: Authority, **settings: Any
) -> AsyncIterator[Frontend]:
    """A frontend with HTTPS; `client` trusts its authority."""
    pair = authority.issue("frontend")
    async with running_frontend(service.port, tls_cert=pair.certificate, tls_key=pair.key, **settings) as frontend:
        trusted = ssl.create_default_context(cafile=authority.ca)
        url = f"https://127.0.0.1:{frontend.port}"
        async with httpx.AsyncClient(base_url=url, verify=trusted, timeout=30) as client:
            frontend.client = client
            await until_ready(frontend)
            yield frontend


async def test_websockets(service: ScriptedTextService, authority: Authority) -> None:
    """A WebSocket is served over TLS, and closed with the code for what is wrong with a message."""
    async with secure_frontend(service, authority, body_limit_bytes=50_000) as frontend:
        trusted = ssl.create_default_context(cafile=authority.ca)
        address = f"wss://127.0.0.1:{frontend.port}/v1/stream"
        async with connect(address, ssl=trusted, proxy=None, origin=frontend_origin(frontend)) as socket:
            start = {"type": "start", "id": "a", "endpoint": "chat.completions", "body": chat("a b")}
            await socket.send(orjson.dumps(start).decode())
            async with asyncio.timeout(5):
                while orjson.loads(await socket.recv())["type"] != "done":
                    pass
            await socket.send("x" * 100_000)
            async with asyncio.timeout(10):
                await socket.wait_closed()
            assert socket.close_code == 1009


def frontend_origin(frontend: Frontend) -> Origin:
    """The origin of a page that it serves over HTTPS."""
    return Origin(f"https://127.0.0.1:{frontend.port}")


async def test_https(service: ScriptedTextService, authority: Authority) -> None:
    """Answers and streams come over HTTPS, with TLS 1.2 and 1.3; who trusts another authority is not connected."""
    async with secure_frontend(service, authority) as frontend:
        whole = (await frontend.client.post(CHAT, json=chat("a b"))).json()["choices"][0]["message"]["content"]
        streamed = await frontend.client.post(CHAT, json=chat("a b", stream=True))
        assert texts(events(streamed.text)) == whole != ""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=authority.ca)
            context.minimum_version = context.maximum_version = version
            _, writer = await asyncio.open_connection("127.0.0.1", frontend.port, ssl=context)
            writer.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.open_connection("127.0.0.1", frontend.port, ssl=ssl.create_default_context())


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x00" * 64, b"SSH-2.0-x\r\n"])
async def test_plain_text_is_sent_away(service: ScriptedTextService, authority: Authority, sent: bytes) -> None:
    """What is no TLS has its connection closed within a second, without an answer and without a line in the log that
    it could fill, and HTTPS is served on."""
    async with secure_frontend(service, authority) as frontend:
        with structlog.testing.capture_logs() as lines:
            reader, writer = await frontend.connect()
            writer.write(sent)
            async with asyncio.timeout(1):
                try:
                    answer = await reader.read()
                except ConnectionResetError:
                    answer = b""
            assert answer[:1] in (b"", b"\x15")
            writer.close()
        assert lines == []
        assert (await frontend.client.get("/v1/models")).status_code == 200


async def endless(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Goes on as fast as it is read."""
    yield started(request)
    while True:
        yield text_pb2.Delta(token_ids=[1], text="x" * 20_000)
        await asyncio.sleep(0)


async def test_leaving_is_cancelling(service: ScriptedTextService, authority: Authority) -> None:
    """A caller who leaves an HTTPS stream frees the generation within a second."""
    service.script = endless
    async with secure_frontend(service, authority) as frontend:
        async with frontend.client.stream("POST", CHAT, json=chat(stream=True)) as response:
            await anext(response.aiter_bytes())
            assert service.live == 1
        await until(lambda: service.live == 0, 1)


async def test_a_reader_that_takes_nothing(service: ScriptedTextService, authority: Authority) -> None:
    """Buffers stay bounded behind TLS: who takes nothing has the generation cancelled and the connection closed."""
    service.script = endless
    async with secure_frontend(service, authority, write_timeout_s=1) as frontend:
        trusted = ssl.create_default_context(cafile=authority.ca)
        reader, writer = await asyncio.open_connection("127.0.0.1", frontend.port, ssl=trusted)
        body = orjson.dumps(chat(stream=True))
        head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"{head}\r\n".encode() + body)
        # The reader's own buffer takes 128 kB and then reads no more.
        await until(lambda: service.live == 1)
        await until(lambda: service.live == 0)
        await asyncio.sleep(1.5)
        assert "streamomni:http_active_streams 0.0" in (await frontend.client.get("/metrics")).text
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError, ssl.SSLError)):
            while True:
                await reader.readexactly(1_000_000)


async def test_mutual_tls_to_the_text_service(authority: Authority) -> None:
    """The frontend shows its certificate to a text service that asks for one, and is served."""
    server, own = authority.issue("tokenizer"), authority.issue("frontend")
    tls = GrpcTlsSettings(tls_cert=server.certificate, tls_key=server.key, tls_client_ca=authority.ca).server_tls()
    service = ScriptedTextService()
    async with service.serve(tls=tls) as port:
        shown = {"tokenizers_tls_cert": own.certificate, "tokenizers_tls_key": own.key}
        async with running_frontend(port, tokenizers_tls_ca=authority.ca, **shown) as frontend:
            await until_ready(frontend)
            assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_wrong_authority_of_the_text_service(authority: Authority, tmp_path: Path) -> None:
    """With a wrong authority the frontend is not ready, answers 503, and logs once what to do."""
    server = authority.issue("tokenizer")
    tls = GrpcTlsSettings(tls_cert=server.certificate, tls_key=server.key).server_tls()
    async with ScriptedTextService().serve(tls=tls) as port:
        with structlog.testing.capture_logs() as lines:
            async with running_frontend(port, tokenizers_tls_ca=Authority(tmp_path, "other").ca) as frontend:
                await asyncio.sleep(2)
                assert (await frontend.client.post(CHAT, json=chat())).status_code == 503
                assert not await frontend.ready()
        told = [line["error"] for line in lines if line["event"] == "models unknown"]
        assert len(told) == 1
        assert told[0].startswith("its certificate is not one of the authority trusted here; set …_TLS_CA to")


async def test_half_a_setting(authority: Authority) -> None:
    """A certificate without its key ends the start with one line."""
    with pytest.raises(SettingsError, match="_TLS_CERT and …_TLS_KEY belong together"):
        async with running_frontend(1, tls_cert=authority.issue("frontend").certificate):
            pass
