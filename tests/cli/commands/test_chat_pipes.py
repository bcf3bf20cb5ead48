"""`stream-omni chat` without a terminal: in scripts and pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.command_line import environment, main_prints, stream_omni
from tests.cli.scripted_http import REQUEST_ID, chat_server
from tests.cli.scripted_service import REPOSITORY
from tests.cli.scripted_sessions import Sessions

PARIS = "It is Paris�[2J.\n"


def piped(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `stream-omni chat` with a text on standard input."""
    command = [sys.executable, "-m", "services.cli", "chat", *arguments]
    return subprocess.run(
        command,
        cwd=REPOSITORY,
        env=environment({"FORCE_COLOR": "1"}),
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_question_on_the_command_line() -> None:
    """Only the answer goes to standard output, without colours or control sequences; nothing else is said."""
    with chat_server("tiny") as server:
        done = stream_omni("chat", "hello world", "--url", server.url, "--system", "Be brief.")
        assert (done.returncode, done.stdout, done.stderr) == (0, PARIS, "")
        (request,) = server.chats
        assert [message["content"] for message in request["messages"]] == ["Be brief.", "hello world"]


def test_all_of_standard_input_is_one_message() -> None:
    """`-` reads to the end, line ends and all but the last one."""
    with chat_server("tiny") as server:
        done = piped("hello\nworld\n", "-", "--url", server.url)
        assert (done.returncode, done.stdout, done.stderr) == (0, PARIS, "")
        assert [message["content"] for message in server.chats[0]["messages"]] == ["hello\nworld"]


def test_each_line_is_a_message_of_one_conversation() -> None:
    """Without `-` each line of piped input is answered in turn, and one that fails does not end the others."""
    with chat_server("tiny") as server:
        done = piped("one\n\nrefuse\ntwo\n", "--url", server.url)
        assert (done.returncode, done.stdout) == (1, PARIS * 2)
        assert done.stderr == f"stream-omni: error: too long�[2J (request {REQUEST_ID})\n"
        assert [message["content"] for message in server.chats[-1]["messages"]][::2] == ["one", "two"]


def test_failure_is_on_standard_error() -> None:
    """A refused or broken answer gives exit code 1 and one line; what came before the break is on standard output."""
    with chat_server("tiny") as server:
        refused = stream_omni("chat", "refuse", "--url", server.url)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr == f"stream-omni: error: too long�[2J (request {REQUEST_ID})\n"
        failed = stream_omni("chat", "fail", "--url", server.url)
        assert (failed.returncode, failed.stdout) == (1, "half\n")
        assert "the engine died" in failed.stderr


def test_notices_are_on_standard_error() -> None:
    """Trimmed history and filter matches do not get among the answer."""
    with chat_server("tiny") as server:
        done = stream_omni("chat", "trim", "--url", server.url)
        assert (done.returncode, done.stdout) == (0, "It █████\n")
        assert [line.split(": ")[0] for line in done.stderr.splitlines()] == ["stream-omni"] * 3


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` prints one object, also for an answer that failed, whose exit code is 1 all the same."""
    with chat_server("tiny") as server:
        code, output, _ = main_prints(
            capsys, "chat", "hello", "--json", "--url", server.url, "--preset", "translate", "--var", "to=x=y"
        )
        document = json.loads(output)
        assert (code, document["content"], document["finish_reason"]) == (0, "It is Paris\x1b[2J.", "stop")
        assert document["usage"] == {"completion_tokens": 3}
        assert (server.chats[0]["preset"], server.chats[0]["preset_variables"]) == ("translate", {"to": "x=y"})
        code, output, _ = main_prints(capsys, "chat", "fail", "--json", "--url", server.url)
        document = json.loads(output)
        assert (code, document["content"]) == (1, "half")
        assert document["error"] == f"the engine died (request {REQUEST_ID})"


def test_ndjson_is_one_object_an_event(capsys: pytest.CaptureFixture[str]) -> None:
    """`--ndjson` prints what happens as it happens, and the document at the end."""
    with chat_server("tiny") as server:
        _, output, _ = main_prints(
            capsys, "chat", "trim", "--ndjson", "--url", server.url, "--context-policy", "sliding_window"
        )
        kinds = [json.loads(line)["event"] for line in output.splitlines()]
        assert kinds == ["context", "reasoning", "text", "filter_match", "format_fault", "end"]
        assert server.chats[0]["context_policy"] == "sliding_window"


def test_session_is_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    """A script can take part in a session by its id, or in the one that was used last."""
    sessions = Sessions()
    with chat_server("tiny", sessions=sessions) as server:
        sessions.respond("POST", "/v1/sessions", {"model": "tiny"}, {})
        for option in (["--session", "sess_1"], ["--resume"]):
            _, output, _ = main_prints(capsys, "chat", "hello", "--json", "--url", server.url, *option)
            assert json.loads(output)["session_id"] == "sess_1"
        assert len(sessions.path("sess_1")) == 4
        code, output, errors = main_prints(capsys, "chat", "hello", "--url", server.url, "--session", "sess_9")
        assert (code, output) == (1, "")
        assert "no such session" in errors


def test_interrupt_stops_the_answer() -> None:
    """Ctrl-C closes the connection; the exit code is 130, and what has come is on standard output."""
    with chat_server("tiny") as server:
        command = [sys.executable, "-m", "services.cli", "chat", "forever", "--url", server.url]
        with subprocess.Popen(
            command, cwd=REPOSITORY, env=environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.read(7) == "on and "
            os.kill(process.pid, signal.SIGINT)
            assert server.left.wait(5)
            _, errors = process.communicate(timeout=20)
            assert (process.returncode, errors) == (130, "stream-omni: stopped\n")


def test_reader_that_leaves_stops_the_answer() -> None:
    """When nobody reads the pipe any more, the answer ends at the service, too, and nothing is complained about."""
    with chat_server("tiny") as server:
        command = [sys.executable, "-m", "services.cli", "chat", "forever", "--url", server.url]
        with subprocess.Popen(
            command, cwd=REPOSITORY, env=environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.read(7) == "on and "
            process.stdout.close()
            assert server.left.wait(10)
            assert (process.wait(20), process.stderr.read()) == (141, "")


def test_options_that_do_not_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused in one line with exit code 2, before anything is asked."""
    for arguments, told in (
        (["hello", "--var", "a=b"], "--var is for a preset's variables"),
        (["hello", "--var", "a"], "'a' is not NAME=VALUE"),
        ([" "], "there is no question"),
        (["hello", "--resume", "--session", "x"], "not allowed with"),
        (["hello", "--json", "--ndjson"], "not allowed with"),
        (["hello", "--context-policy", "other"], "invalid choice"),
    ):
        code, output, errors = main_prints(capsys, "chat", "--url", "http://127.0.0.1:9", *arguments)
        assert (code, output, errors.count("\n")) == (2, "", 1)
        assert told in errors
