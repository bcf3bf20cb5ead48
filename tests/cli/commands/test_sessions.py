"""`stream-omni sessions`, against a real HTTP service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import main_prints
from tests.cli.scripted_http import ChatServer, chat_server
from tests.cli.scripted_sessions import Sessions

Run = Callable[..., str]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A service with two sessions."""
    sessions = Sessions()
    sessions.respond("POST", "/v1/sessions", {"title": "Paris\x1b[2J", "system": "Be brief."}, {})
    answer, _ = sessions.begin({"session_id": "sess_1", "messages": [{"role": "user", "content": "hello"}]})
    sessions.end(answer["answer_id"], "Bonjour.\x1b[2J")
    sessions.respond("POST", "/v1/sessions", {"title": "Rome"}, {})
    with chat_server("tiny", sessions=sessions) as running:
        yield running


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Gives what the command prints; it succeeds and says nothing else."""

    def output_of(server: ChatServer, *arguments: str) -> str:
        code, output, errors = main_prints(capsys, "sessions", *arguments, "--url", server.url)
        assert (code, errors) == (0, "")
        return output

    return output_of


def test_sessions_are_listed(server: ChatServer, run: Run) -> None:
    """Newest first, a line each, without control characters; or fewer, or those that hold a text, or as JSON."""
    lines = run(server, "list").splitlines()
    assert [line.split()[0] for line in lines] == ["sess_2", "sess_1"]
    assert lines[1].endswith("Paris�[2J")
    assert len(run(server, "list", "--limit", "1").splitlines()) == 1
    assert run(server, "list", "--search", "Par").startswith("sess_1 ")
    assert [session["id"] for session in json.loads(run(server, "list", "--json"))["data"]] == ["sess_2", "sess_1"]


def test_session_is_shown(server: ChatServer, run: Run) -> None:
    """As Markdown without control characters, or as JSON with its messages."""
    assert run(server, "show", "sess_1") == (
        "# Paris�[2J\n\n## System\n\nBe brief.\n\n## User\n\nhello\n\n## Assistant\n\nBonjour.�[2J\n"
    )
    shown = json.loads(run(server, "show", "sess_1", "--json"))
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]


def test_session_is_renamed_and_deleted(server: ChatServer, run: Run) -> None:
    """Both say nothing when they are done, or what was done as JSON."""
    assert run(server, "rename", "sess_1", "Lyon") == ""
    assert json.loads(run(server, "rename", "sess_2", "Turin", "--json"))["title"] == "Turin"
    assert "Lyon" in run(server, "list")
    assert json.loads(run(server, "delete", "sess_1", "sess_2", "--json")) == {"deleted": ["sess_1", "sess_2"]}
    assert run(server, "list") == ""


def test_session_goes_from_one_service_to_another(server: ChatServer, run: Run, tmp_path: Path) -> None:
    """What is exported, to a file that is the user's alone or to standard output, can be imported."""
    path = tmp_path / "session.json"
    assert run(server, "export", "sess_1", str(path)) == ""
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(run(server, "export", "sess_1")) == json.loads(path.read_text())
    with chat_server("tiny", sessions=Sessions()) as other:
        imported = run(other, "import", str(path)).strip()
        assert "hello" in run(other, "show", imported)


def test_failures_are_one_line(server: ChatServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown session, a file in the way, no file, no JSON: each says what to do."""
    path = tmp_path / "a.json"
    path.write_text("[1")
    for arguments, code, told in (
        (["show", "sess_9"], 1, "no such session"),
        (["export", "sess_1", str(path)], 1, "cannot be made (File exists); give another name"),
        (["import", str(tmp_path / "no.json")], 1, "cannot be read"),
        (["import", str(path)], 2, "holds no JSON"),
        (["show"], 2, "required: ID"),
    ):
        found, output, errors = main_prints(capsys, "sessions", *arguments, "--url", server.url)
        assert (found, output, errors.count("\n")) == (code, "", 1)
        assert told in errors
