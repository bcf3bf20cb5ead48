from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from services.chassis.stop import FORCED_EXIT_CODE
from tests.architecture.source_tree import REPOSITORY

# Serves until it is asked to stop; then ends after what its argument says.
SCRIPT = """
import asyncio, sys
from services.chassis.logs import configure_logs
from services.chassis.stop import run_until_stopped

async def serve(stopping):
    print("serving", flush=True)
    await stopping.wait()
    print("ending", flush=True)
    await asyncio.sleep(float(sys.argv[1]))
    print("ended", flush=True)

configure_logs("test")
run_until_stopped(serve)
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that end with the test."""
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[str]], seconds_to_end: float) -> subprocess.Popen[str]:
    """A serving process."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(seconds_to_end)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    assert line_of(process) == "serving"
    return process


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that the process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_is_an_orderly_end(started: list[subprocess.Popen[str]], number: signal.Signals) -> None:
    """After one signal the service ends what it does and exits with 0."""
    process = start(started, 0.1)
    process.send_signal(number)
    output, log = process.communicate(timeout=10)
    assert output.split() == ["ending", "ended"]
    assert number.name in log
    assert process.returncode == 0


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_at_once(started: list[subprocess.Popen[str]], second: signal.Signals) -> None:
    """A second signal does not wait for the orderly end, and the exit code tells of it."""
    process = start(started, 60.0)
    process.send_signal(signal.SIGTERM)
    assert line_of(process) == "ending"
    process.send_signal(second)
    output, log = process.communicate(timeout=10)
    assert output == ""
    assert "forced to end" in log
    assert process.returncode == FORCED_EXIT_CODE
