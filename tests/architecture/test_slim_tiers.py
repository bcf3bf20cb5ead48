"""The frontend and the tokenizer need neither torch nor vLLM: each is installed alone, and all of it imported.

`tests/e2e/smollm2/test_slim_tiers.py` starts them so and lets them serve.
"""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.architecture.source_tree import REPOSITORY
from tests.cli.scripted_http import chat_server
from tests.cli.terminal import CTRL_D, ENTER, command_in_terminal

# Imports each module of the tier and of the chassis, then asks for what must not be there.
IMPORT_ALL = """
import importlib, importlib.util, pkgutil, sys

names = []
for package in ("services.chassis", sys.argv[1]):
    path = importlib.import_module(package).__path__
    names += [package, *(module.name for module in pkgutil.walk_packages(path, package + "."))]
for name in names:
    importlib.import_module(name)
for heavy in ("torch", "vllm", "transformers"):
    assert importlib.util.find_spec(heavy) is None, f"{heavy} is installed"
print(len(names))
"""


def test_wheel_holds_every_source_file(wheel: Path) -> None:
    """Code, generated code and its sources, type markers and the web page's files are all packaged."""
    packaged = set(zipfile.ZipFile(wheel).namelist())
    suffixes = {".py", ".pyi", ".proto", ".typed", ".html", ".css", ".js", ".svg"}
    services = {path.relative_to(REPOSITORY) for path in (REPOSITORY / "services").rglob("*")}
    protos = {path.relative_to(REPOSITORY / "protos") for path in (REPOSITORY / "protos" / "streamomni").rglob("*")}
    expected = {str(path) for path in services | protos if path.suffix in suffixes}
    assert "streamomni/engine/v1/engine_pb2.py" in expected
    assert expected - packaged == set()


@pytest.mark.parametrize("tier", ["tokenizer", "frontend"])
def test_tier_imports_without_torch_and_vllm(tier: str, slim_python: Callable[[str], Path], tmp_path: Path) -> None:
    """In a fresh environment made from the tier's list alone, all of its modules and the chassis import."""
    # Isolated mode: neither this repository nor the caller's PYTHONPATH may stand in for what is not installed.
    command = [str(slim_python(tier)), "-I", "-c", IMPORT_ALL, f"services.{tier}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_terminal_needs_no_tier(slim_python: Callable[[str], Path], tmp_path: Path) -> None:
    """Whoever only talks to a service installs the command's own list: it starts, and all of the chat imports."""
    python = str(slim_python("cli"))
    command = [python, "-I", "-c", IMPORT_ALL, "services.cli.chat"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    command = [python, "-I", "-m", "services.cli", "models", "list", "--url", "http://127.0.0.1:9"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "no service answers" in done.stderr) == (1, True), done.stderr


def test_chat_makes_do_without_its_libraries(slim_python: Callable[[str], Path], tmp_path: Path) -> None:
    """Where the extra `cli` is not installed, the chat says so once and goes on line by line."""
    command = (str(slim_python("frontend")), "-I", "-m", "services.cli", "chat")
    with chat_server("tiny") as server:
        with command_in_terminal(tmp_path, (*command, "--url", server.url, "--no-session"), columns=120) as terminal:
            terminal.read_until("need stream-omni[cli], which is not installed here]")
            terminal.read_until("> ")
            terminal.type("hello", ENTER)
            terminal.read_until("It is Paris")
            terminal.read_until("> ")
            terminal.type(CTRL_D)
            assert terminal.exit_code() == 0
        assert len(server.chats) == 1
