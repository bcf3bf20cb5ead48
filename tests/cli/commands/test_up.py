"""What `stream-omni up` refuses before it starts anything, and what it says when it is ready."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from services.cli.commands.up import ready_line
from services.cli.up_settings import UpSettings
from services.engine.settings import EngineSettings
from services.frontend.settings import FrontendSettings
from services.tokenizer.settings import TokenizerSettings
from tests.cli.command_line import stream_omni
from tests.cli.scripted_service import free_port

# Prints the arguments that a shell would give to curl.
CURL = f"curl() {{ {shlex.quote(sys.executable)} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"; }}; "


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of the test's own for state, which the command inherits."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def model_directory(path: Path, weights: int = 1) -> str:
    """A directory that looks like a model whose weights are that many bytes long, and take no space."""
    (path / "config.json").write_text('{"dtype": "float32"}')
    with (path / "model.safetensors").open("wb") as file:
        file.truncate(weights)
    return str(path)


def free_ports() -> list[str]:
    """Options that give each tier a port of its own that is free."""
    names = ("port", "engine-port", "tokenizer-port", "engine-metrics-port", "tokenizer-metrics-port")
    return [part for name in names for part in (f"--{name}", free_port())]


def refusal(*arguments: str, **environ: str) -> str:
    """The one line with which `up` refuses to start."""
    done = stream_omni("up", *arguments, **environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_busy_ports_are_named_with_their_options(tmp_path: Path) -> None:
    """All that are in use are told in one line."""
    with socket.create_server(("127.0.0.1", 0)) as first, socket.create_server(("127.0.0.1", 0)) as second:
        ports = [str(server.getsockname()[1]) for server in (first, second)]
        line = refusal(model_directory(tmp_path), "--port", ports[0], "--engine-metrics-port", ports[1])
    assert f"port {ports[0]} (--port) is in use" in line
    assert f"port {ports[1]} (--engine-metrics-port) is in use" in line


def test_busy_port_is_found_before_the_default_model_is_fetched(tmp_path: Path) -> None:
    """Nobody waits a minute for a model to learn that a port is taken."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = refusal("--port", str(server.getsockname()[1]), OMNI_CLI_MODELS_DIR=str(tmp_path / "models"))
    assert "(--port) is in use" in line
    assert not (tmp_path / "models").exists()


def test_missing_model_is_named(tmp_path: Path) -> None:
    """A directory that is not there, and one that holds no model."""
    assert f"there is no model directory {tmp_path}/gone" in refusal(f"{tmp_path}/gone")
    assert f"{tmp_path} holds no config.json" in refusal(str(tmp_path))
    assert f"{tmp_path} holds no config.json" in refusal(OMNI_ENGINE_MODEL=str(tmp_path))


def test_too_little_memory_is_told_with_figures(tmp_path: Path) -> None:
    """A model that no machine of today holds is refused."""
    line = refusal(model_directory(tmp_path, 2**43), *free_ports())
    assert "the model needs about 8194.0 GiB of memory" in line


def test_wrong_setting_is_told_before_anything_starts(tmp_path: Path) -> None:
    """A variable of any tier that is misspelt, or that up decides itself."""
    model = model_directory(tmp_path)
    assert "unknown setting OMNI_FRONTEND_PROT" in refusal(model, OMNI_FRONTEND_PROT="1")
    assert "OMNI_TOKENIZER_ENGINE cannot be chosen here" in refusal(model, OMNI_TOKENIZER_ENGINE="a:1")


@pytest.mark.parametrize("name", ["tiny", "it's", "a b", "é"])
def test_ready_line_holds_a_curl_for_a_shell(name: str) -> None:
    """One line: the URL, then a command that a shell splits into exactly the request that was meant."""
    engine = EngineSettings(model="m", served_name=name)
    settings = UpSettings(engine, TokenizerSettings(), 1, FrontendSettings(port=8100))
    line = ready_line(settings)
    start, _, command = line.partition(" · try: ")
    assert start == "ready at http://127.0.0.1:8100"
    done = subprocess.run(["bash", "-c", CURL + command], capture_output=True, text=True, check=True)
    url, header, content_type, flag, body = json.loads(done.stdout)
    assert (url, header, flag) == ("http://127.0.0.1:8100/v1/chat/completions", "-H", "-d")
    assert content_type == "Content-Type: application/json"
    assert json.loads(body)["model"] == name
    assert "\n" not in line


def test_ready_line_leaves_the_key_to_the_shell(tmp_path: Path) -> None:
    """Where a key is asked for, the curl sends the one of OMNI_API_KEY, and the line itself holds none."""
    frontend = FrontendSettings(port=8100, api_keys_file=tmp_path / "keys")
    line = ready_line(UpSettings(EngineSettings(model="m"), TokenizerSettings(), 1, frontend))
    command = f"OMNI_API_KEY=so-right; {CURL}{line.partition(' · try: ')[2]}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Authorization: Bearer so-right" in json.loads(done.stdout)
