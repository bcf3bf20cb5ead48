"""`stream-omni chat`, in a real terminal, against a real HTTP service."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.cli.arguments import CommandError
from services.cli.commands.chat import choose_model
from tests.cli.command_line import environment, stream_omni
from tests.cli.scripted_http import REQUEST_ID, chat_server
from tests.cli.scripted_service import REPOSITORY

CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """A user at a terminal: types, and reads what is shown."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor
        self._shown = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._descriptor, text.encode())

    def read_until(self, text: str) -> str:
        """Read until that text is shown; returns what was shown up to its end."""
        deadline = time.monotonic() + 20
        while text not in self._shown:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"never shown: {text!r}, but {self._shown!r}"
            try:
                self._shown += os.read(self._descriptor, 4096).decode(errors="replace")
            except OSError:
                pytest.fail(f"the terminal closed after {self._shown!r}")
        before, _, self._shown = self._shown.partition(text)
        return before + text

    def exit_code(self) -> int:
        """Wait for the end."""
        try:
            while os.read(self._descriptor, 4096):
                pass
        except OSError:
            # So a terminal says that nobody has it open any more.
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


@contextmanager
def chat(*arguments: str) -> Iterator[Terminal]:
    """Run the command in a terminal."""
    environ = environment({"TERM": "dumb"})
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        os.execvpe(sys.executable, [sys.executable, "-m", "services.cli", "chat", *arguments], environ)
    try:
        yield Terminal(pid, descriptor)
    finally:
        os.close(descriptor)


def test_answer_is_streamed_and_ctrl_d_ends() -> None:
    """The model and its address are shown, each question is answered with its options, and Ctrl-D ends with 0."""
    with chat_server("tiny", "other") as server:
        with chat("--url", server.url, "--system", "Be brief.", "--temperature", "0") as terminal:
            assert f"tiny at {server.url}" in terminal.read_until("> ")
            terminal.type("What is the capital of France?\r")
            terminal.read_until("It is Paris")
            terminal.read_until("> ")
            terminal.type(CTRL_D)
            assert terminal.exit_code() == 0
        (request,) = server.chats
    assert (request["model"], request["temperature"], request["stream"]) == ("tiny", 0.0, True)
    assert [message["role"] for message in request["messages"]] == ["system", "user"]


def test_ctrl_c_stops_the_answer_and_then_the_session() -> None:
    """While an answer comes, Ctrl-C closes its connection and the prompt is back; at the prompt it ends with 0."""
    with chat_server("tiny") as server, chat("--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("forever\r")
        terminal.read_until("on and on and ")
        terminal.type(CTRL_C)
        terminal.read_until("[stopped]")
        assert server.left.wait(5)
        terminal.read_until("> ")
        terminal.type("hello\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        contents = [message["content"] for message in server.chats[-1]["messages"]]
        assert (contents[0], contents[2]) == ("forever", "hello")
        assert contents[1].startswith("on and on and ")
        terminal.type(CTRL_C)
        assert terminal.exit_code() == 0


def test_error_is_one_line_and_the_session_goes_on() -> None:
    """A refusal is shown with the request's id, and the next question is asked as usual."""
    with chat_server("tiny") as server, chat("--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("refuse\r")
        terminal.read_until(f"[error: too long (request {REQUEST_ID})]\r\n")
        terminal.read_until("> ")
        terminal.type("hello\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0


def test_key_is_sent_with_each_question() -> None:
    """A service that asks for a key gets it with the list of models and with each question."""
    with chat_server("tiny", key="so-right") as server:
        with chat("--url", server.url, "--api-key", "so-right") as terminal:
            terminal.read_until("> ")
            terminal.type("hello\r")
            terminal.read_until("It is Paris")
            terminal.read_until("> ")
            terminal.type(CTRL_D)
            assert terminal.exit_code() == 0
        assert len(server.chats) == 1


def test_line_can_be_edited_and_recalled() -> None:
    """Cursor keys move within the line and back to earlier ones."""
    with chat_server("tiny") as server, chat("--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("ello\x01h\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        terminal.type("\x10 again\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        assert [chat["messages"][-1]["content"] for chat in server.chats] == ["hello", "hello again"]
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0


def test_unreachable_service_is_one_line() -> None:
    """Nothing answers: one line on standard error, exit code 1."""
    done = stream_omni("chat", "--url", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "no service answers at http://127.0.0.1:9" in done.stderr


def test_model_is_the_wanted_or_the_first() -> None:
    """A model that is not served is refused with the names of those that are."""
    assert choose_model(["a", "b"], None) == "a"
    assert choose_model(["a", "b"], "b") == "b"
    with pytest.raises(CommandError, match="has no model c; it has a, b"):
        choose_model(["a", "b"], "c")
    with pytest.raises(CommandError, match="has no model ready"):
        choose_model([], None)
