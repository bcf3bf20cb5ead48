"""The tokenizer process: health, drain, logs and exit, before the real engine tier over a scripted engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import httpx
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.chassis.channel import open_channel
from services.chassis.errors import Draining, Unavailable
from services.chassis.settings import SettingsError
from services.chassis.status import error_of_call
from services.tokenizer.__main__ import serve
from services.tokenizer.settings import TokenizerSettings
from streamomni.text.v1 import chat_pb2, text_pb2, text_pb2_grpc
from tests.tokenizer.engine_fixtures import END, TEXT_SERVICE, EngineTier, asking, endless, running_engine, until

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass
class Service:
    """A running service. `stopping` asks it to end."""

    channel: grpc.aio.Channel
    metrics_port: int
    stopping: asyncio.Event
    task: asyncio.Task[None]
    lines: list[Any]

    @property
    def stub(self) -> text_pb2_grpc.TextServiceAsyncStub:
        """Its text service."""
        return text_pb2_grpc.TextServiceStub(self.channel)

    async def health(self, service: str = TEXT_SERVICE) -> int:
        """What it says of its health now."""
        # Its types know no methods.
        stub: Any = health_pb2_grpc.HealthStub(self.channel)
        response: health_pb2.HealthCheckResponse = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        return response.status

    async def until_health(self, status: int, seconds: float = 10) -> None:
        """Wait until it says so."""
        async with asyncio.timeout(seconds):
            while await self.health() != status:  # noqa: ASYNC110 - it is behind a socket
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running_service(engine_port: int, **settings: Any) -> AsyncGenerator[Service, None]:
    """Run the service on free ports; leaving the block stops it, if it has not ended."""
    given = TokenizerSettings(
        engine=f"127.0.0.1:{engine_port}",
        port=0,
        metrics_port=0,
        **{"drain_seconds": 0.0, **settings},
    )
    stopping = asyncio.Event()
    with structlog.testing.capture_logs() as lines:
        task = asyncio.create_task(serve(given, stopping))
        try:
            await until(lambda: task.done() or any(line["event"] == "tokenizer listens" for line in lines))
            (listens,) = [line for line in lines if line["event"] == "tokenizer listens"]
            async with open_channel(f"127.0.0.1:{listens['port']}") as channel:
                await channel.channel_ready()
                yield Service(channel, listens["metrics_port"], stopping, task, lines)
        finally:
            stopping.set()
            await task


@pytest.fixture
async def engine(smollm2: Path) -> AsyncIterator[EngineTier]:
    """A real engine tier over a scripted engine."""
    async with running_engine(smollm2) as tier:
        yield tier


async def test_health_follows_the_engine(smollm2: Path) -> None:
    """NOT_SERVING without an engine, SERVING with a ready model, for the server and the service; NOT_SERVING when the
    engine goes, SERVING when it is back."""
    async with running_engine(smollm2) as first:
        port = first.port
    async with running_service(port) as service:
        assert await service.health() == await service.health("") == NOT_SERVING
        async with running_engine(smollm2, port=port):
            await service.until_health(SERVING)
            assert await service.health("") == SERVING
        await service.until_health(NOT_SERVING, 2)
        async with running_engine(smollm2, port=port):
            await service.until_health(SERVING)


async def test_health_follows_the_model(engine: EngineTier) -> None:
    """A model that fails is no service, until it is loaded again."""
    async with running_service(engine.port) as service:
        await service.until_health(SERVING)
        engine.loader.engine.die()
        await service.until_health(NOT_SERVING, 3)
        await service.until_health(SERVING)


@pytest.mark.parametrize("allowed", [False, True])
async def test_control_tokens_in_a_chats_text(engine: EngineTier, allowed: bool) -> None:
    """A user who writes <|im_end|> does not end the turn, unless a setting says so, as with vLLM's own server."""
    message = chat_pb2.ChatMessage(role="user", text="Hi<|im_end|>")
    request = text_pb2.RenderChatRequest(chat=chat_pb2.ChatPrompt(messages=[message]))
    async with running_service(engine.port, allow_control_tokens=allowed) as service:
        await service.until_health(SERVING)
        rendered = await service.stub.RenderChat(request)
    assert rendered.text.endswith("user\nHi<|im_end|><|im_end|>\n<|im_start|>assistant\n")
    # The system prompt's end, the turn's, and the user's where it counts.
    assert list(rendered.token_ids).count(END) == 2 + allowed


async def test_metrics_are_served(engine: EngineTier) -> None:
    """The metrics port counts tokens, encodings and what is under way."""
    async with running_service(engine.port) as service, httpx.AsyncClient() as client:
        await service.until_health(SERVING)
        async for _ in service.stub.Generate(asking([500, 501])):
            pass
        text = (await client.get(f"http://127.0.0.1:{service.metrics_port}/metrics")).text
        for line in (
            "streamomni:text_tokens_total 3.0",
            "streamomni:text_prompt_tokens_total 2.0",
            "streamomni:text_encode_seconds_count 1.0",
            "streamomni:text_generations_running 0.0",
            "streamomni:text_generations_cancelled_total 0.0",
        ):
            assert f"\n{line}\n" in text


async def test_a_drain_lets_running_generations_end(engine: EngineTier) -> None:
    """Asked to stop, it is NOT_SERVING at once, refuses new requests as draining, ends what runs, and then ends."""
    engine.loader.engine.tick_seconds = 0.01
    async with running_service(engine.port, drain_seconds=20.0) as service:
        await service.until_health(SERVING)
        responses = aiter(service.stub.Generate(asking([500] * 60)))
        await anext(responses)
        service.stopping.set()
        await service.until_health(NOT_SERVING, 1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await anext(aiter(service.stub.Generate(asking([501]))))
        error = error_of_call(caught.value)
        assert isinstance(error, Unavailable) and error.reason == Draining.default_reason
        rest = [response async for response in responses]
        assert rest[-1].HasField("finished")
        async with asyncio.timeout(2):
            await service.task
        assert service.lines[-1]["event"] == "tokenizer ended"
        assert not [line for line in service.lines if line["log_level"] in ("warning", "error")]
    assert engine.idle()


async def test_a_drain_is_bounded(engine: EngineTier) -> None:
    """What runs when the drain time is over is cancelled, at the engine too, its caller gets an error, and the
    process ends."""
    async with running_service(engine.port, drain_seconds=0.1) as service:
        await service.until_health(SERVING)
        responses = aiter(service.stub.Generate(asking([500], n=2, sampling_params=endless())))
        await anext(responses)
        service.stopping.set()
        with pytest.raises(grpc.aio.AioRpcError):
            async with asyncio.timeout(3):
                async for response in responses:
                    assert not response.HasField("finished")
        async with asyncio.timeout(2):
            await service.task
        (warning,) = [line for line in service.lines if line["log_level"] == "warning"]
        assert (warning["event"], warning["live"]) == ("generations cancelled: drain time is over", 2)
    await until(engine.idle, 1)


async def test_a_port_in_use_is_an_error(engine: EngineTier) -> None:
    """Either port in use is told by its number, before anything is served."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for field in ("port", "metrics_port"):
            settings = TokenizerSettings(**{"engine": "127.0.0.1:1", "port": 0, "metrics_port": 0, field: port})
            with pytest.raises(SettingsError, match=str(port)):
                await serve(settings, asyncio.Event())


@asynccontextmanager
async def running_process(engine_port: int, **variables: str) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """Run the process as a user does, at DEBUG."""
    given = {"ENGINE": f"127.0.0.1:{engine_port}", "PORT": "0", "METRICS_PORT": "0", "LOG_LEVEL": "DEBUG", **variables}
    environment = {**os.environ, **{f"OMNI_TOKENIZER_{name}": value for name, value in given.items()}}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.tokenizer", env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_process_from_start_to_signal(engine: EngineTier) -> None:
    """Its log is JSON with the service's name, each line of a request has the request's id, none has text; SIGTERM
    ends it with 0."""
    secret = "Abracadabra"
    async with running_process(engine.port) as process:
        assert process.stderr is not None
        lines: list[dict[str, Any]] = []
        while not lines or lines[-1]["event"] != "tokenizer ready":
            lines.append(json.loads(await process.stderr.readline()))
        (port,) = [line["port"] for line in lines if line["event"] == "tokenizer listens"]
        async with open_channel(f"127.0.0.1:{port}") as channel:
            stub = text_pb2_grpc.TextServiceStub(channel)
            text = text_pb2.TextPrompt(text=f"say {secret} twice")
            request = text_pb2.GenerateRequest(
                request_id="r-77", text=text, stop=[f"{secret}!"], cache_salt=secret, deadline_ms=10_000
            )
            answer = "".join([response.delta.text async for response in stub.Generate(request, wait_for_ready=True)])
            assert answer == text.text
            for bad in (
                text_pb2.GenerateRequest(request_id="r-78", text=text, stop=[secret] * 5),
                text_pb2.GenerateRequest(request_id="r-79", text=text_pb2.TextPrompt(text=f"{secret} " * 3000)),
            ):
                with pytest.raises(grpc.aio.AioRpcError):
                    async for _ in stub.Generate(bad):
                        pass
            await stub.Tokenize(text_pb2.TokenizeRequest(text=secret))
        process.send_signal(signal.SIGTERM)
        rest = (await process.stderr.read()).decode()
        assert await process.wait() == 0
    lines += [json.loads(line) for line in rest.splitlines()]
    assert {line["service"] for line in lines} == {"tokenizer"}
    assert secret not in json.dumps(lines)
    events = [(line["event"], line.get("request_id")) for line in lines]
    assert ("generation started", "r-77") in events and ("generation ended", "r-77") in events
    assert ("generation ended", "r-79") in events
    assert all(request_id for event, request_id in events if event.startswith("generation"))
    assert events[-1] == ("tokenizer ended", None)


async def test_wrong_settings_end_the_process() -> None:
    """One line that names the setting, and the exit code 2."""
    async with running_process(1, PORT="high") as process:
        assert process.stderr is not None
        text = (await process.stderr.read()).decode()
        assert await process.wait() == 2
    assert text.startswith("tokenizer: setting OMNI_TOKENIZER_PORT is wrong: ") and text.count("\n") == 1
