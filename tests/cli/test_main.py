"""The command itself: its help, its version, and errors in one line."""

from __future__ import annotations

import pytest

from tests.cli.command_line import stream_omni


def test_help_names_every_command() -> None:
    """The help goes to standard output and lists what there is."""
    done = stream_omni("--help")
    assert done.returncode == 0
    for command in ("up", "engine", "tokenizer", "frontend", "chat", "sessions", "models"):
        assert f"\n    {command}" in done.stdout


def test_version_is_the_packages() -> None:
    """The version is one line."""
    done = stream_omni("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("stream-omni ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["bogus"], "invalid choice: 'bogus'"),
        (["--bogus"], "required: COMMAND"),
        (["up", "--bogus"], "unrecognized arguments: --bogus"),
        (["up", "--port", "http"], "argument --port: 'http' is not a port"),
        (["up", "--tokenizers", "0"], "argument --tokenizers: '0' is not a number from 1 up"),
        (["up", "--engine-arg", "dtype"], "argument --engine-arg: 'dtype' is not NAME=VALUE"),
        (["chat", "--temperature", "hot"], "argument --temperature"),
        (["models"], "the following arguments are required: ACTION"),
        (["tokenizer", "extra"], "unrecognized arguments: extra"),
    ],
)
def test_wrong_command_line_is_one_line(arguments: list[str], message: str) -> None:
    """It says what is wrong and where help is, and the exit code is 2."""
    done = stream_omni(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("stream-omni: ")
    assert message in done.stderr
    assert "--help shows what there is" in done.stderr
