"""The tokenizer between TLS ports: its own, and the engine's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.chassis.channel import open_channel
from services.chassis.tls import GrpcTlsSettings, client_tls
from services.tokenizer.__main__ import serve
from services.tokenizer.settings import TokenizerSettings
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.architecture.source_tree import REPOSITORY
from tests.certificates import Authority
from tests.tokenizer.engine_fixtures import running_engine, until

SERVING = health_pb2.HealthCheckResponse.SERVING


@asynccontextmanager
async def running_tokenizer(engine_port: int, **settings: Any) -> AsyncGenerator[tuple[int, list[Any]], None]:
    """Run the process's service; gives its port and its log lines."""
    given = TokenizerSettings(engine=f"127.0.0.1:{engine_port}", port=0, metrics_port=0, drain_seconds=0.0, **settings)
    stopping = asyncio.Event()
    with structlog.testing.capture_logs() as lines:
        task = asyncio.create_task(serve(given, stopping))
        try:
            await until(lambda: task.done() or any(line["event"] == "tokenizer listens" for line in lines))
            (port,) = [line["port"] for line in lines if line["event"] == "tokenizer listens"]
            yield port, lines
        finally:
            stopping.set()
            await task


async def until_serving(channel: grpc.aio.Channel) -> None:
    """Wait until the service says that it serves."""
    # Its types know no methods.
    stub: Any = health_pb2_grpc.HealthStub(channel)
    async with asyncio.timeout(20):
        while (await stub.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True)).status != SERVING:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_mutual_tls_on_both_sides(smollm2: Path, tmp_path: Path) -> None:
    """With certificates on all sides the tokenizer gets its files and ids from the engine, and gives text to callers
    who show a certificate."""
    authority = Authority(tmp_path)
    engine, tokenizer, caller = (authority.issue(name) for name in ("engine", "tokenizer", "caller"))
    tls = GrpcTlsSettings(tls_cert=engine.certificate, tls_key=engine.key, tls_client_ca=authority.ca).server_tls()
    own: dict[str, Any] = {"tls_cert": tokenizer.certificate, "tls_key": tokenizer.key, "tls_client_ca": authority.ca}
    to_engine: dict[str, Any] = {
        "engine_tls_ca": authority.ca,
        "engine_tls_cert": tokenizer.certificate,
        "engine_tls_key": tokenizer.key,
    }
    shown = client_tls(authority.ca, caller.certificate, caller.key)
    async with (
        running_engine(smollm2, tls=tls) as tier,
        running_tokenizer(tier.port, **own, **to_engine) as (port, _),
        open_channel(f"127.0.0.1:{port}", shown) as channel,
    ):
        await until_serving(channel)
        responses = [
            response
            async for response in text_pb2_grpc.TextServiceStub(channel).Generate(
                text_pb2.GenerateRequest(text=text_pb2.TextPrompt(text="The quick brown fox"))
            )
        ]
        assert responses[-1].HasField("finished")
        assert any(response.delta.text for response in responses)
        async with open_channel(f"127.0.0.1:{port}", client_tls(authority.ca, None, None)) as stranger:
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await text_pb2_grpc.TextServiceStub(stranger).Tokenize(text_pb2.TokenizeRequest())
            assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_wrong_authority_of_the_engine(smollm2: Path, tmp_path: Path) -> None:
    """With a wrong authority the tokenizer does not serve, and logs once what to do."""
    pair = Authority(tmp_path).issue("engine")
    tls = GrpcTlsSettings(tls_cert=pair.certificate, tls_key=pair.key).server_tls()
    other = Authority(tmp_path, "other").ca
    async with running_engine(smollm2, tls=tls) as tier:
        async with running_tokenizer(tier.port, engine_tls_ca=other) as (port, lines):
            await asyncio.sleep(2)
            async with open_channel(f"127.0.0.1:{port}") as channel:
                stub: Any = health_pb2_grpc.HealthStub(channel)
                assert (await stub.Check(health_pb2.HealthCheckRequest())).status != SERVING
        told = [line["error"] for line in lines if line["event"] == "engine lost"]
        assert len(told) == 1
        assert told[0].startswith("its certificate is not one of the authority trusted here; set …_TLS_CA to")


@pytest.mark.parametrize("tier", ["tokenizer", "frontend"])
def test_process_with_wrong_files_ends(tmp_path: Path, tier: str) -> None:
    """A process whose certificate cannot be read ends with exit code 2 and one line that names the file."""
    name = f"OMNI_{tier.upper()}_TLS"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OMNI_")}
    environ |= {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'protos'}"}
    environ |= {f"{name}_CERT": str(tmp_path / "none.pem"), f"{name}_KEY": str(tmp_path / "none.key")}
    command = [sys.executable, "-m", f"services.{tier}"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"{tier}: TLS file {tmp_path}/none.pem cannot be read: No such file or directory; name a PEM file\n"
    )
