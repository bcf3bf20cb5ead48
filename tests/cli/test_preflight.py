"""What is refused before anything is started."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from services.cli.arguments import UsageError
from services.cli.preflight import available_memory, check_memory, check_ports, locate_model
from services.cli.up_settings import OwnPort
from tests.cli.scripted_service import free_port

GIB = 1024**3


def model_directory(path: Path, weights: int, **config: Any) -> str:
    """Make a model's directory whose weights file is that many bytes long, and take no space."""
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    with (path / "model.safetensors").open("wb") as file:
        file.truncate(weights)
    return str(path)


@pytest.mark.parametrize("model", ["gpt2", "Qwen/Qwen3-0.6B", "HuggingFaceTB/SmolLM2-135M-Instruct"])
def test_hub_id_is_left_as_it_is(model: str) -> None:
    """What can be no path is a hub id."""
    assert locate_model(model) == model


def test_directory_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory is found from anywhere, and `.` has a name."""
    directory = tmp_path / "tiny"
    model_directory(directory, 1)
    monkeypatch.chdir(directory)
    assert locate_model(".") == str(directory)
    monkeypatch.chdir(tmp_path)
    assert locate_model("tiny") == locate_model("./tiny/") == str(directory)


@pytest.mark.parametrize("model", ["/nonexistent/model", "./model", "../model", "~/nonexistent", "here/model", "a/b/c"])
def test_missing_directory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    """A path that is not there is refused, also a relative one below a folder that is there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"there is no model directory .*; give one that exists, or a hub id"):
        locate_model(model)


def test_directory_without_config_is_refused(tmp_path: Path) -> None:
    """A directory that holds no model is named."""
    with pytest.raises(UsageError, match=r"holds no config.json"):
        locate_model(str(tmp_path))


def test_file_is_refused(tmp_path: Path) -> None:
    """A weights file is not a model."""
    (tmp_path / "model.gguf").touch()
    with pytest.raises(UsageError, match="is a file; give the directory"):
        locate_model(str(tmp_path / "model.gguf"))


def test_each_busy_port_is_named_with_its_option() -> None:
    """All that are in use are told at once; free ones are not."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        busy = [server.getsockname()[1] for server in (first, second)]
        own = [
            OwnPort("127.0.0.1", busy[0], "--port"),
            OwnPort("127.0.0.1", int(free_port()), "--engine-port"),
            OwnPort("127.0.0.1", busy[1], "--tokenizer-port"),
        ]
        with pytest.raises(UsageError) as caught:
            check_ports(own)
    named = f"port {busy[0]} (--port) is in use, port {busy[1]} (--tokenizer-port) is in use; end what uses them"
    assert str(caught.value).startswith(named)
    assert "--engine-port" not in str(caught.value)
    check_ports(own)


def test_port_of_a_connection_that_ended_is_free() -> None:
    """A port that only waits for stray packets of an old connection can be opened, so it is not busy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", number)):
            accepted, _ = server.accept()
            # The side that closes first keeps the port waiting.
            accepted.close()
    check_ports([OwnPort("127.0.0.1", number, "--port")])


def test_foreign_address_is_refused() -> None:
    """An address that is not this machine's is told as such, not as a busy port."""
    with pytest.raises(UsageError, match=r"port 8000 \(--port\) cannot be opened on 192.0.2.1"):
        check_ports([OwnPort("192.0.2.1", 8000, "--port")])


@pytest.mark.parametrize(
    ("config", "args", "gib"),
    [
        ({"dtype": "float32"}, {}, 3),
        ({"torch_dtype": "bfloat16"}, {}, 4),
        ({"dtype": "bfloat16"}, {"dtype": "bfloat16"}, 3),
        ({"dtype": "float32"}, {"dtype": "bfloat16"}, 2.5),
        ({"dtype": "float32"}, {"kv_cache_memory_bytes": GIB}, 2),
        ({"dtype": "bfloat16", "quantization_config": {}}, {}, 3),
        ({}, {}, 3),
    ],
)
def test_too_little_memory_is_refused(tmp_path: Path, config: Any, args: Any, gib: float) -> None:
    """1 GiB of weights is counted as the type that the engine will hold it in, and the KV cache is added."""
    model = model_directory(tmp_path, GIB, **config)
    need = int(gib * GIB)
    check_memory(model, args, need)
    with pytest.raises(UsageError, match=f"the model needs about {gib:.1f} GiB of memory .* are available; free some"):
        check_memory(model, args, need - 1)


def test_unknown_size_passes(tmp_path: Path) -> None:
    """Where the size of the model or the memory is not known, nothing is claimed."""
    check_memory("gpt2", {}, 0)
    check_memory(model_directory(tmp_path, GIB), {}, None)


def test_available_memory_is_in_bytes() -> None:
    """The kernel's figure is in KiB; a machine that runs this has between 64 MiB and 64 TiB left."""
    memory = available_memory()
    assert memory is not None
    assert 64 * 1024**2 < memory < 64 * 1024**4
