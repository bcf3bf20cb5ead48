"""Start, stop and health of the whole service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack

import httpx
import pytest

from services.chassis.settings import SettingsError
from services.frontend.service import serve
from services.frontend.settings import FrontendSettings
from streamomni.engine.v1 import models_pb2
from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, echo, finished, model, started
from tests.frontend.conftest import Frontend, Starter, running_frontend, until, until_ready
from tests.frontend.requests import CHAT, chat, error_of, events


async def held(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say one word and wait for ever."""
    yield started(request)
    yield text_pb2.Delta(token_ids=[1], text="word")
    await asyncio.Event().wait()


async def brief(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say one word and end half a second later."""
    yield started(request)
    yield text_pb2.Delta(token_ids=[1], text="word")
    await asyncio.sleep(0.5)
    yield finished(1)


async def test_live_without_a_text_service() -> None:
    """A process whose text service is away is live, not ready, and says why."""
    async with running_frontend(1) as frontend:
        assert (await frontend.client.get("/health/live")).json() == {"status": "live"}
        response = await frontend.client.get("/health/ready")
        assert response.status_code == 503
        assert response.json() == {"status": "not ready", "reason": "no text service is connected"}


async def test_requests_without_a_text_service_are_refused() -> None:
    """Without a text service a generation gets 503 and the time to try again."""
    async with running_frontend(1) as frontend:
        response = await frontend.client.post(CHAT, json=chat())
        assert response.status_code == 503
        assert error_of(response)["type"] == "server_error"
        assert response.headers["retry-after"] == "1"


async def test_ready_follows_the_models(service: ScriptedTextService, frontend: Frontend) -> None:
    """The service is ready exactly while a model is."""
    service.models = [model(state=models_pb2.MODEL_STATE_LOADING)]
    await until_ready(frontend, ready=False)
    response = await frontend.client.get("/health/ready")
    assert response.json()["reason"] == "no model is ready"
    service.models = [model()]
    await until_ready(frontend)


async def test_link_loss_fails_what_runs_and_recovers() -> None:
    """A text service that goes away fails running requests with 503, and serves again when it is back."""
    service = ScriptedTextService(held)
    async with AsyncExitStack() as stack:
        serving = service.serve()
        port = await serving.__aenter__()
        frontend = await stack.enter_async_context(running_frontend(port))
        await until_ready(frontend)
        whole = asyncio.create_task(frontend.client.post(CHAT, json=chat()))
        streamed = asyncio.create_task(frontend.client.post(CHAT, json=chat(stream=True)))
        await until(lambda: service.live == 2)
        await serving.__aexit__(None, None, None)
        refused = await whole
        assert refused.status_code == 503
        assert error_of(refused)["code"] == "unavailable"
        body = (await streamed).text
        assert events(body)[-1]["error"]["type"] == "server_error"
        assert "[DONE]" not in body
        await until_ready(frontend, ready=False)

        service.script = echo
        await stack.enter_async_context(service.serve(port))
        await until_ready(frontend)
        assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_the_least_busy_text_service_is_chosen() -> None:
    """Of two text services, the one with fewer live generations gets the next."""
    one, other = ScriptedTextService(held), ScriptedTextService(held)
    async with one.serve() as port, other.serve() as other_port, running_frontend(port, other_port) as frontend:
        await until_ready(frontend)
        await _both_listed(frontend, one, other)
        requests = [asyncio.create_task(frontend.client.post(CHAT, json=chat())) for _ in range(4)]
        await until(lambda: one.live + other.live == 4)
        assert one.live == other.live == 2
        for request in requests:
            request.cancel()


async def test_a_model_is_asked_for_where_it_is() -> None:
    """A request goes to the text service that has its model, even to a busier one."""
    one, other = ScriptedTextService(held), ScriptedTextService()
    other.models = [model("other")]
    async with one.serve() as port, other.serve() as other_port, running_frontend(port, other_port) as frontend:
        await _both_listed(frontend, one, other)
        for _ in range(2):
            response = await frontend.client.post(CHAT, json=chat() | {"model": "other"})
            assert response.json()["model"] == "other"
        assert len(other.requests) == 2


async def test_drain_lets_running_requests_end(service: ScriptedTextService, start: Starter) -> None:
    """On stop, running requests end by themselves, new ones are refused, and the service says not ready."""
    frontend = await start(drain_seconds=10)
    service.script = brief
    streamed = asyncio.create_task(frontend.client.post(CHAT, json=chat(stream=True)))
    await until(lambda: service.live == 1)
    frontend.stopping.set()
    await until_ready(frontend, ready=False)
    response = await frontend.client.get("/health/ready")
    assert response.json()["reason"] == "the service is shutting down"
    refused = await frontend.client.post(CHAT, json=chat())
    assert refused.status_code == 503
    assert error_of(refused)["code"] == "draining"
    assert events((await streamed).text)[-1] == "[DONE]"
    async with asyncio.timeout(5):
        await frontend.task


async def test_drain_time_ends_what_still_runs(service: ScriptedTextService, start: Starter) -> None:
    """When the drain time is over, a stream ends with an error event and its generation is cancelled."""
    frontend = await start(drain_seconds=0.2)
    service.script = held
    streamed = asyncio.create_task(frontend.client.post(CHAT, json=chat(stream=True)))
    await until(lambda: service.live == 1)
    frontend.stopping.set()
    assert events((await streamed).text)[-1]["error"]["code"] == "draining"
    async with asyncio.timeout(5):
        await frontend.task
    assert service.live == 0


async def test_admission_is_bounded(service: ScriptedTextService, start: Starter) -> None:
    """One request more than are allowed at once is refused with 503, and served after one has ended."""
    frontend = await start(max_requests=1)
    service.script = brief
    first = asyncio.create_task(frontend.client.post(CHAT, json=chat()))
    await until(lambda: service.live == 1)
    refused = await frontend.client.post(CHAT, json=chat())
    assert refused.status_code == 503
    assert error_of(refused)["code"] == "overloaded"
    assert (await first).status_code == 200
    assert (await frontend.client.post(CHAT, json=chat())).status_code == 200


async def test_busy_port_is_a_settings_error(frontend: Frontend) -> None:
    """A taken port is one line that names it."""
    settings = FrontendSettings(port=frontend.port)
    with pytest.raises(SettingsError, match=f"port 127.0.0.1:{frontend.port} cannot be opened"):
        await serve(settings, asyncio.Event(), lambda port: None)


def test_process_on_a_busy_port_says_so_and_fails() -> None:
    """The process exits non-zero with one line when its port is taken."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            _COMMAND, env=_environment(port), capture_output=True, text=True, timeout=20, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        f"frontend: port 127.0.0.1:{port} cannot be opened: Address already in use; is another service using it?"
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_process_ends_in_order_on_a_signal(number: signal.Signals) -> None:
    """SIGINT and SIGTERM end the process with exit code 0 and without a traceback."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen(_COMMAND, env=_environment(port), stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 20
        while True:
            try:
                assert httpx.get(f"http://127.0.0.1:{port}/health/live").status_code == 200
                break
            except httpx.ConnectError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    lines = [json.loads(line) for line in errors.splitlines()]
    assert {line["service"] for line in lines} == {"frontend"}
    assert "Traceback" not in errors


_COMMAND = [sys.executable, "-m", "services.frontend"]


def _environment(port: int) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(("", "protos")),
        "OMNI_FRONTEND_PORT": str(port),
        "OMNI_FRONTEND_TOKENIZERS": "127.0.0.1:1",
    }


async def _both_listed(frontend: Frontend, *services: ScriptedTextService) -> None:
    """Wait until the frontend is linked to all services and knows all their models."""
    names = {model.name for service in services for model in service.models}
    async with asyncio.timeout(10):
        while True:
            response = await frontend.client.get("/v1/models")
            metrics = (await frontend.client.get("/metrics")).text
            linked = f"streamomni:text_links_connected {float(len(services))}" in metrics
            if linked and names == {entry["id"] for entry in response.json().get("data", [])}:
                return
            await asyncio.sleep(0.02)
