"""`stream-omni chat` in a terminal that can do little, against a real HTTP service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from services.cli.arguments import CommandError
from services.cli.commands.chat import choose_model
from tests.cli.command_line import stream_omni
from tests.cli.scripted_http import REQUEST_ID, chat_server
from tests.cli.terminal import CTRL_C, CTRL_D, Terminal, in_terminal

Chat = Callable[..., AbstractContextManager[Terminal]]


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    """Runs the command in a terminal."""

    def run(*arguments: str) -> AbstractContextManager[Terminal]:
        return in_terminal(tmp_path, "chat", *arguments, term="dumb")

    return run


def test_answer_is_streamed_and_ctrl_d_ends(chat: Chat) -> None:
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


def test_ctrl_c_stops_the_answer_and_then_the_session(chat: Chat) -> None:
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


def test_error_is_one_line_and_the_session_goes_on(chat: Chat) -> None:
    """A refusal is shown with the request's id, and the next question is asked as usual."""
    with chat_server("tiny") as server, chat("--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("refuse\r")
        terminal.read_until(f"[error: too long�[2J (request {REQUEST_ID})]\r\n")
        terminal.read_until("> ")
        terminal.type("hello\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0


def test_key_is_sent_with_each_question(chat: Chat) -> None:
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


def test_line_can_be_edited_and_recalled(chat: Chat) -> None:
    """Cursor keys move within the line and back to earlier ones."""
    with chat_server("tiny") as server, chat("--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("ello\x01h\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        terminal.type("\x10 again\r")
        terminal.read_until("It is Paris")
        terminal.read_until("> ")
        assert [asked["messages"][-1]["content"] for asked in server.chats] == ["hello", "hello again"]
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0


def test_backslash_goes_on_to_the_next_line(chat: Chat) -> None:
    """A line that ends with a backslash is not the end of the message."""
    with chat_server("tiny") as server, chat("--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("hello\\\r")
        terminal.read_until("… ")
        terminal.type("world\r")
        terminal.read_until("It is Paris")
        assert server.chats[0]["messages"] == [{"role": "user", "content": "hello\nworld"}]


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
