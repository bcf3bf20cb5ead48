"""A command under make, in a real terminal: signals reach the command, and make reports how it ended."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# A service that stops cleanly: it says which signal ended it and exits 0.
SERVICE = """
import signal, sys
def stop(number, frame):
    print("stopped by", signal.Signals(number).name, flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True:
    signal.pause()
"""


@contextmanager
def make_in_terminal(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Run the service under make in a terminal of its own; gives make's process id and the terminal's other side."""
    (tmp_path / "service.py").write_text(SERVICE)
    (tmp_path / "Makefile").write_text(
        f"run:\n\t@exec {sys.executable} -m services.cli.foreground {sys.executable} service.py\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execvpe("make", ["make", "run"], os.environ | {"PYTHONPATH": str(REPOSITORY)})
    try:
        yield pid, terminal
    finally:
        os.close(terminal)


def read_until(terminal: int, text: str, seconds: float = 20) -> str:
    """Read from the terminal until ``text`` has come."""
    seen = ""
    deadline = time.monotonic() + seconds
    while text not in seen:
        assert time.monotonic() < deadline, seen
        try:
            seen += os.read(terminal, 1024).decode()
        except OSError:
            pytest.fail(f"the terminal closed after {seen!r}")
    return seen


def exit_code(pid: int) -> int:
    """Wait for ``pid`` and return its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_ctrl_c_stops_the_service_and_make_exits_zero(tmp_path: Path) -> None:
    """Ctrl-C in the terminal interrupts the service alone, whose clean end is make's clean end."""
    with make_in_terminal(tmp_path) as (pid, terminal):
        read_until(terminal, "ready")
        os.write(terminal, b"\x03")
        read_until(terminal, "stopped by SIGINT")
        assert exit_code(pid) == 0


def test_sigterm_to_make_reaches_the_service(tmp_path: Path) -> None:
    """A SIGTERM for make, which make passes to its recipe, is passed on to the service, and nothing stays behind."""
    with make_in_terminal(tmp_path) as (pid, terminal):
        read_until(terminal, "ready")
        os.kill(pid, signal.SIGTERM)
        read_until(terminal, "stopped by SIGTERM")
        assert exit_code(pid) != 0


def test_exit_code_is_passed_on_without_a_terminal() -> None:
    """Without a terminal the command takes the place of the caller, exit code included."""
    command = [sys.executable, "-m", "services.cli.foreground", sys.executable, "-c", "raise SystemExit(7)"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, cwd=REPOSITORY, check=False)
    assert done.returncode == 7
