"""Clients as their users install them: each in an environment of its own, made once and kept in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from services.cli.build_once import Progress, build_once

HERE = Path(__file__).parent
PYTHON_CLIENTS = ("instructor", "langchain", "litellm", "llama_index", "llm", "openai")
JAVASCRIPT_CLIENTS = ("openai", "vercel_ai")
# The tests' own environment has it.
_OWN = "openai"
_PACKAGES = {
    "python-instructor": "instructor",
    "python-langchain": "langchain-openai",
    "python-litellm": "litellm",
    "python-llama_index": "llama-index-llms-openai-like",
    "python-llm": "llm",
    "python-openai": "openai",
    "javascript-openai": "openai",
    "javascript-vercel_ai": "@ai-sdk/openai-compatible",
}
# Clients that report to their makers are told not to.
_ENVIRONMENT = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "LANGSMITH_TRACING": "false",
    "DO_NOT_TRACK": "1",
    "OPENAI_API_KEY": "none",
}


@dataclass
class ClientProgram:
    """A running client program; see `programs/scenarios.py`."""

    process: subprocess.Popen[str]
    log_file: Path

    def run(self, scenario: str) -> dict[str, Any]:
        """Run a scenario and return what the client made of it; "" asks for the scenarios' names."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{scenario}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client ended in {scenario}:\n{self.log_file.read_text()[-4000:]}"
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def end(self) -> None:
        """End the program."""
        self.process.kill()
        self.process.wait()


def title(client: str) -> str:
    """A client's package as its users know it, with the version that is installed here."""
    language, _, name = client.partition("-")
    package = _PACKAGES[client]
    if language == "javascript":
        versions = json.loads((HERE / "javascript" / "package.json").read_text())["dependencies"]
        return f"{package} {versions[package]} (JavaScript)"
    if name == _OWN:
        return f"{package} {version(package)} (Python)"
    pinned = (HERE / "requirements" / f"{name}.txt").read_text().splitlines()
    return f"{package} {next(line for line in pinned if line.startswith(f'{package}==')).partition('==')[2]}"


def python_command(client: str, cache: Path) -> list[str]:
    """Return the command of a Python client's program, its environment made if it is not there."""
    program = str(HERE / "programs" / f"{client}_client.py")
    if client == _OWN:
        return [sys.executable, program]
    return [str(python_environment(client, cache) / "bin" / "python"), program]


def python_environment(client: str, cache: Path) -> Path:
    """Return the directory of a client's environment, made from its pinned list if it is not there."""
    requirements = HERE / "requirements" / f"{client}.txt"
    recipe = f"{sys.version_info[:2]} {requirements.read_text()}"

    def build(partial: Path, _: Progress) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(partial)], check=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(partial / "bin" / "python")]
        install = ["install", "--quiet", "--no-deps", "--no-compile", "--requirement", str(requirements)]
        subprocess.run([*pip, *install], check=True)

    return build_once(cache / client, recipe=_digest(recipe), build=build, progress=print)


def javascript_command(client: str, cache: Path) -> list[str]:
    """Return the command of a JavaScript client's program, its packages fetched if they are not there."""
    sources = sorted((HERE / "javascript").iterdir())
    recipe = "".join(source.read_text() for source in sources)

    def build(partial: Path, _: Progress) -> None:
        for source in sources:
            shutil.copy(source, partial)
        subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=partial, check=True
        )

    packages = build_once(cache / "javascript", recipe=_digest(recipe), build=build, progress=print)
    return ["node", str(packages / f"{client}_client.mjs")]


def start(command: list[str], log_file: Path) -> ClientProgram:
    """Start a client program; its errors go to a file."""
    with log_file.open("w") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **_ENVIRONMENT},
            text=True,
        )
    return ClientProgram(process, log_file)


def _digest(recipe: str) -> str:
    return hashlib.sha256(recipe.encode()).hexdigest()
