"""`stream-omni chat` in a whole terminal: many lines, commands, Markdown, sessions, against a real HTTP service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.scripted_http import REQUEST_ID, ChatServer, chat_server
from tests.cli.scripted_sessions import Sessions
from tests.cli.terminal import ALT_ENTER, CTRL_C, CTRL_D, CTRL_J, ENTER, TAB, UP, Terminal, in_terminal

PARIS = "It is Paris�[2J."


@pytest.fixture
def sessions() -> Sessions:
    """What the service keeps."""
    return Sessions()


@pytest.fixture
def server(sessions: Sessions) -> Iterator[ChatServer]:
    """A service that keeps sessions."""
    with chat_server("tiny", "other", sessions=sessions) as running:
        yield running


def ask(terminal: Terminal, *keys: str, shown: str = PARIS) -> None:
    """Type a message, and wait for what is shown and for the next prompt."""
    terminal.type(*keys, ENTER)
    terminal.read_until(shown)
    terminal.read_until("> ")


def said(server: ChatServer, at: int = -1) -> list[str]:
    """The texts that a request sent."""
    return [message["content"] for message in server.chats[at].get("messages", [])]


def test_message_of_many_lines(server: ChatServer, tmp_path: Path) -> None:
    """Alt+Enter, Ctrl-J and a backslash begin a new line, a pasted text comes whole, and Enter sends."""
    with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
        assert f"tiny at {server.url}" in terminal.read_until("> ")
        ask(terminal, "one", ALT_ENTER, "two", CTRL_J, "three\\", ENTER, "four")
        ask(terminal, "\x1b[200~pasted\ntext\n\x1b[201~")
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0
    assert [said(server, 0), said(server, 1)] == [["one\ntwo\nthree\nfour"], ["pasted\ntext\n"]]


def test_model_cannot_command_the_terminal(server: ChatServer, tmp_path: Path) -> None:
    """Escape sequences of an answer are shown as text."""
    with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("hello", ENTER)
        assert "�[2J" in terminal.read_until(PARIS)


def test_prompt_history_is_kept_for_the_next_time(server: ChatServer, tmp_path: Path) -> None:
    """What was typed is recalled in a later conversation, from a file that nobody else can read."""
    for keys in (["first question"], [UP, " again"]):
        with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
            terminal.read_until("> ")
            ask(terminal, *keys)
            terminal.type(CTRL_D)
            assert terminal.exit_code() == 0
    assert said(server) == ["first question again"]
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_ctrl_c_stops_an_answer_clears_a_line_and_ends(server: ChatServer, tmp_path: Path) -> None:
    """It closes the connection of a running answer, then empties what is typed, then ends with 0."""
    with in_terminal(tmp_path, "chat", "--url", server.url, "--no-session") as terminal:
        terminal.read_until("> ")
        terminal.type("forever", ENTER)
        terminal.read_until("on and on and ")
        terminal.type(CTRL_C)
        terminal.read_until("[stopped]")
        assert server.left.wait(5)
        terminal.read_until("> ")
        ask(terminal, "not this", CTRL_C, "hello")
        assert said(server)[-1] == "hello"
        terminal.type(CTRL_C)
        assert terminal.exit_code() == 0


def test_resizing_within_an_answer_is_survived(server: ChatServer, tmp_path: Path) -> None:
    """A terminal that changes its size while an answer comes goes on showing it, and the prompt comes back."""
    with in_terminal(tmp_path, "chat", "--url", server.url, columns=40, rows=10) as terminal:
        terminal.read_until("> ")
        terminal.type("forever", ENTER)
        terminal.read_until("on and on and ")
        for columns, rows in ((20, 6), (100, 30), (8, 3)):
            terminal.resize(columns, rows)
            terminal.read_until("on and ")
        terminal.resize(80, 24)
        terminal.type(CTRL_C)
        terminal.read_until("[stopped]")
        terminal.read_until("> ")
        ask(terminal, "hello")


def test_session_is_gone_on_with(server: ChatServer, sessions: Sessions, tmp_path: Path) -> None:
    """At the end stands how to go on; `--session` and `--resume` do, showing the last question and answer."""
    with in_terminal(tmp_path, "chat", "--url", server.url, "--model", "other", "--system", "Be brief.") as terminal:
        terminal.read_until("> ")
        ask(terminal, "hello")
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0
        assert "stream-omni chat --session sess_1" in terminal.left
    for option in (["--session", "sess_1"], ["--resume"]):
        with in_terminal(tmp_path, "chat", "--url", server.url, *option) as terminal:
            assert "session sess_1 · hello" in terminal.read_until("other at")
            terminal.read_until("> ")
            ask(terminal, "/system", shown="Be brief.")
            ask(terminal, "more")
        assert (server.chats[-1]["session_id"], server.chats[-1]["model"]) == ("sess_1", "other")
    assert [message["content"] for message in sessions.path("sess_1")][::2] == ["hello", "more", "more"]


def test_retry_and_edit(server: ChatServer, tmp_path: Path) -> None:
    """Retrying asks for another answer to the same message, editing changes the message at the prompt or at once."""
    with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
        terminal.read_until("> ")
        ask(terminal, "/retry", shown="[error: nothing was asked yet; ask something first]")
        ask(terminal, "hello")
        ask(terminal, "/retry")
        assert server.chats[-1]["parent_message_id"] == "msg_1"
        assert "messages" not in server.chats[-1]
        terminal.type("/edit", ENTER)
        terminal.read_until("> hello")
        ask(terminal, " there")
        assert (server.chats[-1]["parent_message_id"], said(server)) == (None, ["hello there"])
        ask(terminal, "/edit at once")
        assert said(server) == ["at once"]


def test_commands_show_and_change_what_counts(server: ChatServer, sessions: Sessions, tmp_path: Path) -> None:
    """Model, system prompt, preset, statistics, sessions and help; a mistake is one line that says what there is."""
    with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
        terminal.read_until("> ")
        ask(terminal, "/help", shown="/preset [NAME [VARIABLE=VALUE]…|-]")
        ask(terminal, "/model", shown="* tiny\r\n  other")
        ask(terminal, "/model nonsense", shown="[error: the service has no model nonsense; it has tiny, other]")
        ask(terminal, "/model other", shown="[other answers from now on]")
        ask(terminal, "/system Be brief.", shown="[system prompt set]")
        ask(terminal, "/preset", shown="translate  Translates. [language=French|German]")
        ask(terminal, "/preset translate language=French", shown="[preset translate from now on")
        ask(terminal, "/stats", shown="no answer yet")
        ask(terminal, "hello")
        chat = server.chats[-1]
        assert (chat["model"], chat["preset"], chat["preset_variables"]) == (
            "other",
            "translate",
            {"language": "French"},
        )
        assert sessions.sessions["sess_1"]["system"] == "Be brief."
        ask(terminal, "/model tiny", shown="[tiny answers from now on]")
        assert sessions.sessions["sess_1"]["model"] == "tiny"
        ask(terminal, "/preset -", shown="[no preset from now on]")
        ask(terminal, "/stats", shown="answer tokens        3")
        ask(terminal, "/session", shown="* sess_1")
        ask(terminal, "/new", shown="[a new conversation]")
        ask(terminal, "/bogus", shown="[error: there is no command /bogus; /help shows those there are")
        ask(terminal, "//help me")
        assert (said(server), server.chats[-1]["session_id"]) == (["/help me"], "sess_2")
        assert "preset" not in server.chats[-1]
        terminal.type("/quit", ENTER)
        assert terminal.exit_code() == 0


def test_conversation_is_saved_as_its_name_says(server: ChatServer, tmp_path: Path) -> None:
    """`/save` writes Markdown or JSON, does not write over a file unless told to, and names what it cannot do."""
    state, markdown, document = tmp_path / "state", tmp_path / "a b.md", tmp_path / "a.json"
    with in_terminal(state, "chat", "--url", server.url, columns=200) as terminal:
        terminal.read_until("> ")
        ask(terminal, "hello")
        ask(terminal, f"/save {markdown}", shown=f"[saved 2 messages to {markdown}]")
        ask(terminal, f"/save {markdown}", shown="is there already")
        ask(terminal, f"/save -f {markdown}", shown=f"[saved 2 messages to {markdown}]")
        ask(terminal, f"/save {document}", shown="[saved 2 messages")
        ask(terminal, "/save a.pdf", shown="ends with neither .md nor .json")
        ask(terminal, "/save", shown="needs a file's name")
    assert "## User\n\nhello\n" in markdown.read_text()
    assert [message["role"] for message in json.loads(document.read_text())["messages"]] == ["user", "assistant"]


def test_commands_are_completed(server: ChatServer, tmp_path: Path) -> None:
    """Tab completes a command's name, and then what it takes, asked from the service."""
    with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
        terminal.read_until("> ")
        terminal.type("/mo", TAB)
        terminal.read_until("/model")
        terminal.type(" ot", TAB)
        terminal.read_until("other")
        ask(terminal, shown="[other answers from now on]")


def test_error_is_one_line_and_the_conversation_goes_on(server: ChatServer, tmp_path: Path) -> None:
    """A refusal is shown with the request's id."""
    with in_terminal(tmp_path, "chat", "--url", server.url) as terminal:
        terminal.read_until("> ")
        ask(terminal, "refuse", shown=f"[error: too long�[2J (request {REQUEST_ID})]")
        ask(terminal, "hello")


def test_what_was_trimmed_is_told(server: ChatServer, tmp_path: Path) -> None:
    """Trimmed history, filter matches and format faults each get a line under the answer."""
    with in_terminal(tmp_path, "chat", "--url", server.url, "--no-session", columns=120) as terminal:
        terminal.read_until("> ")
        terminal.type("trim", ENTER)
        terminal.read_until("It █████")
        terminal.read_until("[history trimmed: 2 earlier messages (40 tokens) were left out so that the rest fits]")
        terminal.read_until("[filter names masked 5 characters at 3]")
        terminal.read_until("[json fault at character 9: an object is not closed]")
