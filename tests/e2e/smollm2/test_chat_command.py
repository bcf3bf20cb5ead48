"""`stream-omni chat`, `sessions` and `models path` as a user at a terminal and a script have them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.cli.terminal import CTRL_D, ENTER, command_in_terminal
from tests.e2e.service import STREAM_OMNI, Service, wait_until

QUESTION = "What is the capital of France?"
CUT_OFF = "stream-omni: cut off: the answer reached its token limit\n"


def run(*arguments: str, typed: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [STREAM_OMNI, *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=False)


def stream_omni(*arguments: str, typed: str | None = None) -> str:
    """What the command prints; it succeeds and says no more than that the answer was cut off."""
    done = run(*arguments, typed=typed)
    assert (done.returncode, done.stderr) in ((0, ""), (0, CUT_OFF)), done.stderr
    return done.stdout


def test_chat_streams_stops_and_is_gone_on_with(service: Service, tmp_path: Path) -> None:
    """An answer comes as it is generated; Ctrl-C frees the engine and leaves the session; Ctrl-D ends it with 0.

    The service keeps all of it, the stopped answer as a part, and a later command goes on with it.
    """
    command = (STREAM_OMNI, "chat", "--url", service.url, "--temperature", "0")
    with command_in_terminal(tmp_path, command) as terminal:
        terminal.read_until("> ", 60)
        terminal.type(QUESTION, ENTER)
        terminal.read_until("Paris", 60)
        terminal.read_until("> ")
        terminal.type("Count from one to five hundred in words.", ENTER)
        wait_until(lambda: not service.is_idle(), 20, "vLLM does not run")
        terminal.interrupt()
        wait_until(service.is_idle, 1, "vLLM is not idle")
        terminal.read_until("[stopped]")
        terminal.read_until("> ")
        terminal.type("/edit ", QUESTION, ENTER)
        terminal.read_until("Paris", 60)
        terminal.read_until("> ")
        terminal.type("/stats", ENTER)
        terminal.read_until("tokens a second")
        terminal.read_until("> ")
        terminal.type(CTRL_D)
        assert terminal.exit_code() == 0
        found = re.search(r"--session (\S+)\]", terminal.left)
        assert found, terminal.left
    answer = json.loads(stream_omni("chat", "Thanks.", "--resume", "--json", "--url", service.url, "--max-tokens", "4"))
    assert answer["session_id"] == found[1]
    assert answer["stats"]["ttft_ms"] > 0
    shown = json.loads(stream_omni("sessions", "show", found[1], "--json", "--url", service.url))
    asked = [message["content"] for message in shown["messages"] if message["role"] == "user"]
    assert asked == [QUESTION, QUESTION, "Thanks."]
    exported = json.loads(stream_omni("sessions", "export", found[1], "--url", service.url))
    assert "partial" in [message["status"] for message in exported["messages"]]
    stream_omni("sessions", "delete", found[1], "--url", service.url)


def test_pipe_holds_the_answer_alone(service: Service) -> None:
    """All of standard input is one message, and the answer comes out as text, or as events that join to it."""
    options = ("--url", service.url, "--temperature", "0", "--max-tokens", "16")
    plain = stream_omni("chat", "-", *options, typed=f"{QUESTION}\n")
    assert "Paris" in plain
    events = [json.loads(line) for line in stream_omni("chat", QUESTION, "--ndjson", *options).splitlines()]
    text = "".join(event["text"] for event in events if event["event"] == "text")
    assert (text, events[-1]["content"]) == (plain.removesuffix("\n"), text)
    assert events[-1]["usage"]["completion_tokens"] <= 16


def test_preset_is_put_to_a_message(service: Service) -> None:
    """A preset with a variable is taken by its name; an unknown one is refused by the service in one line."""
    options = ("--url", service.url, "--max-tokens", "4", "--json")
    answer = json.loads(
        stream_omni("chat", "Good morning", "--preset", "translate", *options, "--var", "target_language=German")
    )
    assert answer["usage"]["completion_tokens"] <= 4
    refused = run("chat", "x", "--preset", "nonsense", *options)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "there is no preset of this name" in refused.stderr


def test_models_path(smollm2: object) -> None:
    """`models path` prints the default model's directory and nothing else."""
    assert stream_omni("models", "path") == f"{smollm2}\n"
