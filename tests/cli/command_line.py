"""Running `stream-omni` as users do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from services.cli.__main__ import main
from tests.cli.scripted_service import REPOSITORY


def stream_omni(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; none of the caller's settings reach it, only those given here."""
    command = [sys.executable, "-m", "services.cli", *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment(environ), capture_output=True, text=True, timeout=60, check=False
    )


def main_prints(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command within this process, which spares its start. Returns: exit code, output, errors."""
    code = main(arguments)
    return (code, *capsys.readouterr())


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without any setting of stream-omni but those given."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("OMNI_")}
    return bare | {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'protos'}"} | dict(environ)
