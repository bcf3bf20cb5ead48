"""The engine's gRPC port with TLS."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import grpc.aio
import pytest

from services.chassis.channel import open_channel
from services.chassis.settings import SettingsError
from services.chassis.tls import client_tls
from services.engine.__main__ import serve
from services.engine.settings import EngineSettings
from streamomni.engine.v1 import engine_pb2_grpc, models_pb2
from tests.architecture.source_tree import REPOSITORY
from tests.certificates import Authority
from tests.engine.engine_service import tokenizer_directory
from tests.engine.test_main import free_port
from tests.fakes.scripted_engine import ScriptedLoader


async def test_port_with_tls(tmp_path: Path) -> None:
    """With a certificate set, the tier serves callers who trust its authority, and none in plain text."""
    authority = Authority(tmp_path)
    pair = authority.issue("engine")
    port = free_port()
    settings = EngineSettings(
        model="m", port=port, metrics_port=0, drain_seconds=0, tls_cert=pair.certificate, tls_key=pair.key
    )
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(serve(settings, ScriptedLoader(tokenizer_directory(tmp_path)), stopping))
        try:
            async with open_channel(f"127.0.0.1:{port}", client_tls(authority.ca, None, None)) as channel:
                stub = engine_pb2_grpc.EngineServiceStub(channel)
                listed = await stub.ListModels(models_pb2.ListModelsRequest(), wait_for_ready=True, timeout=10)
                assert [model.name for model in listed.models] == ["m"]
            async with open_channel(f"127.0.0.1:{port}") as channel:
                stub = engine_pb2_grpc.EngineServiceStub(channel)
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    await stub.ListModels(models_pb2.ListModelsRequest())
                assert refusal.value.code() is grpc.StatusCode.UNAVAILABLE
        finally:
            stopping.set()


async def test_wrong_files_end_the_start(tmp_path: Path) -> None:
    """A certificate without its key ends the start before a port is opened or a model loaded."""
    settings = EngineSettings(model="m", port=0, metrics_port=0, tls_cert=Authority(tmp_path).issue("one").certificate)
    with pytest.raises(SettingsError, match="belong together"):
        await serve(settings, ScriptedLoader(tokenizer_directory(tmp_path)), asyncio.Event())


def test_process_with_wrong_files_ends(tmp_path: Path) -> None:
    """A certificate that cannot be read ends the process at once with exit code 2 and one line that names the file."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OMNI_")}
    environ |= {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'protos'}", "OMNI_ENGINE_MODEL": str(tmp_path)}
    environ |= {"OMNI_ENGINE_TLS_CERT": str(tmp_path / "none.pem"), "OMNI_ENGINE_TLS_KEY": str(tmp_path / "none.key")}
    command = [sys.executable, "-m", "services.engine"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"engine: TLS file {tmp_path}/none.pem cannot be read: No such file or directory; name a PEM file\n"
    )
