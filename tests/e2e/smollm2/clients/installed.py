"""Clients as their users install them: each in an environment of its own, made once and kept in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli.build_once import Progress, build_once

HERE = Path(__file__).parent
PYTHON_CLIENTS = ("instructor", "langchain", "litellm", "llama_index", "llm")
JAVASCRIPT_CLIENTS = ("openai", "vercel_ai")
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

    def run(self, scenario: str) -> dict[str, Any]:
        """Run a scenario and return what the client made of it."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{scenario}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client ended in {scenario}"
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer


def python_command(client: str, cache: Path) -> list[str]:
    """Return the command of a Python client's program, its environment made if it is not there."""
    environment = python_environment(client, cache)
    return [str(environment / "bin" / "python"), str(HERE / "programs" / f"{client}_client.py")]


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


def start(command: list[str], url: str, model: str, log_file: Path) -> ClientProgram:
    """Start a client program against a service."""
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [*command, url, model],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **_ENVIRONMENT},
            text=True,
        )
    return ClientProgram(process)


def _digest(recipe: str) -> str:
    return hashlib.sha256(recipe.encode()).hexdigest()
