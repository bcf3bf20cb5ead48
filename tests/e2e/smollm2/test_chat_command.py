"""`stream-omni chat` and `models path` as a user at a terminal has them."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time

from tests.e2e.service import STREAM_OMNI, Service, wait_until


class Terminal:
    """A terminal with a command in it."""

    def __init__(self, *command: str) -> None:
        self._master, inner = pty.openpty()
        self.process = subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
        os.close(inner)
        self.screen = ""

    def type(self, text: str) -> None:
        """Type; `\\x03` is Ctrl-C, `\\x04` Ctrl-D."""
        os.write(self._master, text.encode())

    def read_until(self, wanted: str, since: int = 0, seconds: float = 60) -> None:
        """Read until the screen holds `wanted` at or after position `since`."""
        begin = time.monotonic()
        while wanted not in self.screen[since:]:
            assert time.monotonic() - begin < seconds, f"no {wanted!r} on the screen: {self.screen!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                self.screen += os.read(self._master, 4096).decode(errors="replace")


def test_chat_streams_and_stops(service: Service) -> None:
    """An answer comes as it is generated; Ctrl-C frees the engine and leaves the session; Ctrl-D ends it with 0."""
    terminal = Terminal(STREAM_OMNI, "chat", "--url", service.url, "--temperature", "0")
    terminal.read_until("> ")
    terminal.type("What is the capital of France?\n")
    terminal.read_until("Paris")
    since = len(terminal.screen)
    terminal.read_until("> ", since)
    terminal.type("Count from one to five hundred in words.\n")
    wait_until(lambda: not service.is_idle(), 20, "vLLM does not run")
    os.kill(terminal.process.pid, 2)
    wait_until(service.is_idle, 1, "vLLM is not idle")
    since = len(terminal.screen)
    terminal.read_until("> ", since)
    terminal.type("What is the capital of France?\n")
    terminal.read_until("Paris", since)
    terminal.read_until("> ", len(terminal.screen))
    terminal.type("\x04")
    assert terminal.process.wait(10) == 0


def test_models_path(smollm2: object) -> None:
    """`models path` prints the default model's directory and nothing else."""
    done = subprocess.run([STREAM_OMNI, "models", "path"], capture_output=True, text=True, check=True)
    assert done.stdout == f"{smollm2}\n"
