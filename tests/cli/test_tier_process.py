"""How the end of a tier is described."""

from __future__ import annotations

import signal

import pytest

from services.cli.tier_process import describe_exit


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (3, "exit code 3"), (-signal.SIGKILL, "SIGKILL"), (-signal.SIGSEGV, "SIGSEGV")],
)
def test_exit_is_told_by_code_or_signal(code: int, words: str) -> None:
    """A signal has its name, everything else is an exit code."""
    assert describe_exit(code) == words
