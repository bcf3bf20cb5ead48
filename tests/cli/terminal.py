"""A user at a real terminal, with a command of ours in it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.cli.scripted_service import REPOSITORY

CTRL_C, CTRL_D, CTRL_J, ALT_ENTER, ENTER, UP, TAB = "\x03", "\x04", "\n", "\x1b\r", "\r", "\x1b[A", "\t"
# How prompt_toolkit draws a space at the end of a prompt.
_SPACE = re.compile(r"\x08\x1b\[2C")
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]")


class Terminal:
    """Types, and reads what is shown."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor
        self._shown = ""

    def type(self, *keys: str) -> None:
        """Press keys."""
        os.write(self._descriptor, "".join(keys).encode())

    def read_until(self, text: str, seconds: float = 15) -> str:
        """Read until that text is shown, colours and cursor moves aside; returns what was shown up to its end."""
        deadline = time.monotonic() + seconds
        while text not in (plain := _plain(self._shown)):
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"never shown: {text!r}, but {self._shown!r}"
            try:
                self._shown += os.read(self._descriptor, 4096).decode(errors="replace")
            except OSError:
                pytest.fail(f"the terminal closed after {self._shown!r}")
        before, _, self._shown = plain.partition(text)
        return before + text

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the command is told."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def interrupt(self) -> None:
        """Send what Ctrl-C sends, whatever state the keyboard is in."""
        os.kill(self._pid, 2)

    def exit_code(self) -> int:
        """Read what is left, and wait for the end."""
        try:
            while piece := os.read(self._descriptor, 4096):
                self._shown += piece.decode(errors="replace")
        except OSError:
            # So a terminal says that nobody has it open any more.
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    @property
    def left(self) -> str:
        """What was shown after the last text that was waited for."""
        return _plain(self._shown)


def _plain(text: str) -> str:
    return _SEQUENCE.sub("", _SPACE.sub(" ", text))


@contextmanager
def in_terminal(
    state: Path, *arguments: str, term: str = "xterm-256color", columns: int = 80, rows: int = 24
) -> Iterator[Terminal]:
    """Run `stream-omni` with these arguments in a terminal; it keeps its state in the given directory."""
    with command_in_terminal(
        state, (sys.executable, "-m", "services.cli", *arguments), term, columns, rows
    ) as terminal:
        yield terminal


@contextmanager
def command_in_terminal(
    state: Path, command: Sequence[str], term: str = "xterm-256color", columns: int = 80, rows: int = 24
) -> Iterator[Terminal]:
    """Run any command in a terminal."""
    environ = environment({"TERM": term, "OMNI_CLI_STATE_DIR": str(state)})
    pid, descriptor = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.chdir(REPOSITORY)
        os.execvpe(command[0], list(command), environ)
    try:
        yield Terminal(pid, descriptor)
    finally:
        # Whatever still runs in it is hung up.
        os.close(descriptor)
