"""`stream-omni engine | tokenizer | frontend`."""

from __future__ import annotations

import signal
import subprocess
import sys

import httpx
import pytest

from services.cli.arguments import CommandError
from services.cli.commands.tier import check_installed
from tests.cli.command_line import environment, stream_omni
from tests.cli.scripted_service import REPOSITORY, free_port, wait_until


def answers(url: str) -> bool:
    """Whether a page answers 200."""
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(
    ("tier", "page", "settings"),
    [
        ("frontend", "/health/live", ["OMNI_FRONTEND_PORT"]),
        ("tokenizer", "/metrics", ["OMNI_TOKENIZER_METRICS_PORT", "OMNI_TOKENIZER_PORT"]),
    ],
)
def test_tier_runs_in_this_process_until_a_signal(tier: str, page: str, settings: list[str]) -> None:
    """The tier takes its settings from the environment, serves, and ends with 0 on SIGTERM."""
    ports = {name: free_port() for name in settings}
    command = [sys.executable, "-m", "services.cli", tier]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment(ports), stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: answers(f"http://127.0.0.1:{ports[settings[0]]}{page}"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("tier", ["engine", "tokenizer", "frontend"])
def test_unknown_setting_is_one_line(tier: str) -> None:
    """A misspelt variable ends the tier at once with 2, and the line names it."""
    done = stream_omni(tier, **{f"OMNI_{tier.upper()}_PROT": "1", "OMNI_ENGINE_MODEL": "tiny"})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"unknown setting OMNI_{tier.upper()}_PROT" in done.stderr


def test_engine_without_a_model_says_so() -> None:
    """There is no default for the engine alone."""
    done = stream_omni("engine")
    assert (done.returncode, done.stderr) == (2, "stream-omni: engine: no model; name a directory or a hub id\n")


def test_tier_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tier's packages are missing, the error names the extra that brings them."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "editable" not in repr(finder)])
    monkeypatch.delitem(sys.modules, "fastokens", raising=False)
    with pytest.raises(CommandError, match=r"fastokens is missing\); install stream-omni\[tokenizer\]"):
        check_installed("tokenizer")
