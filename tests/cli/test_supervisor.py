"""All tiers together, as real processes: started, announced, ended in order, and nothing left behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.cli.scripted_service import is_alive, service, wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_tiers_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """The tier next to the user ends first, each has ended before the next is asked, and the exit code is 0."""
    with service(tmp_path, {"engine": ["slow"], "tokenizer": ["slow"], "frontend": ["slow"]}) as up:
        up.until_ready()
        before = len(up.journal)
        up.process.send_signal(number)
        assert up.end() == 0
        assert up.journal[before:] == [
            f"{name} {what}" for name in ("frontend", "tokenizer", "engine") for what in ("asked", "ended")
        ]
        assert not [pid for pid in up.all_pids() if is_alive(pid)]


def test_ready_is_said_once_and_nothing_else_is_printed(tmp_path: Path) -> None:
    """Standard output is the ready line alone; what tiers print goes to standard error."""
    with service(tmp_path, {"engine": [], "frontend": []}) as up:
        up.until_ready()
        os.kill(up.pids("frontend")[0], signal.SIGKILL)
        wait_until(lambda: up.logged("tier serves again"))
        up.process.send_signal(signal.SIGTERM)
        assert up.end() == 0
        assert up.process.stdout is not None
        assert up.process.stdout.read() == ""
        assert up.errors.count("engine says hello") == 1
        assert up.errors.count("frontend says hello") == 2


def test_ready_waits_for_the_last_tier(tmp_path: Path) -> None:
    """As long as one tier does not serve, nothing is announced but progress, and a signal still ends all with 0."""
    with service(tmp_path, {"engine": ["mute"], "frontend": []}) as up:
        wait_until(lambda: "up: starting, 5 s: engine not ready yet; frontend ready" in up.errors)
        up.process.send_signal(signal.SIGINT)
        assert up.end() == 0
        assert up.process.stdout is not None
        assert up.process.stdout.read() == ""
        assert not [pid for pid in up.all_pids() if is_alive(pid)]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (1, "tokenizer ended before it was ready (exit code 1); what it wrote above says why"),
        (2, "tokenizer is set up wrongly (exit code 2); what it wrote above says why"),
    ],
)
def test_tier_that_never_gets_ready_ends_all(tmp_path: Path, code: int, reason: str) -> None:
    """A tier that ends before it was ever ready is not started again: all end, with exit code 1 and the reason."""
    with service(tmp_path, {"engine": [], "tokenizer": [f"exit={code}"], "frontend": []}) as up:
        assert up.end() == 1
        assert up.errors[-1] == reason
        assert len(up.pids("tokenizer")) == 1
        assert not [pid for pid in up.all_pids() if is_alive(pid)]


def test_second_signal_kills_all_at_once(tmp_path: Path) -> None:
    """A second signal ends tiers that would not end, with what they started, in no time and with exit code 130."""
    with service(tmp_path, {"engine": ["stubborn", "parent"], "frontend": ["stubborn"]}, {"end": 100.0}) as up:
        up.until_ready()
        up.process.send_signal(signal.SIGINT)
        wait_until(lambda: any(line.startswith("up: stopping") for line in up.errors))
        time.sleep(0.2)
        assert len([pid for pid in up.all_pids() if is_alive(pid)]) == 3
        up.process.send_signal(signal.SIGINT)
        started = time.monotonic()
        assert up.end() == 130
        assert time.monotonic() - started < 5
        assert not [pid for pid in up.all_pids() if is_alive(pid)]


def test_killed_supervisor_takes_its_tiers_along(tmp_path: Path) -> None:
    """When the supervisor is killed, the kernel asks each tier to end, and each ends its own way."""
    with service(tmp_path, {"engine": ["slow"], "tokenizer": [], "frontend": []}) as up:
        up.until_ready()
        up.process.kill()
        wait_until(lambda: not [pid for pid in up.all_pids() if is_alive(pid)])
        assert sorted(line for line in up.journal if line.endswith("ended")) == [
            "engine ended",
            "frontend ended",
            "tokenizer ended",
        ]


def test_tier_that_dies_while_all_end_stays_down(tmp_path: Path) -> None:
    """While the first tiers drain, one that dies is not started again, and the exit code stays 0."""
    with service(tmp_path, {"engine": [], "frontend": ["stubborn"]}) as up:
        up.until_ready()
        up.process.send_signal(signal.SIGTERM)
        wait_until(lambda: any(line.startswith("up: stopping") for line in up.errors))
        os.kill(up.pids("engine")[0], signal.SIGKILL)
        assert up.end() == 0
        assert len(up.pids("engine")) == 1
        assert up.logged("tier ended and is started again") == []
