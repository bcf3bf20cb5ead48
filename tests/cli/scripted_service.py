"""Scripted tiers under the real supervisor, in a process of its own that tests can signal.

As a program: ``python -m tests.cli.scripted_service STAGES PATIENCE``, both JSON, supervises them like ``up`` does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.chassis.logs import configure_logs
from services.cli.commands.up import supervise
from services.cli.probes import GrpcHealthProbe
from services.cli.supervised_tier import Patience, TierFailed
from services.cli.tier import Tier

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("scripted_tier.py")
QUICK: Mapping[str, Any] = {"pauses": [0.05, 0.2, 0.4], "healthy": 1000.0, "end": 1.0, "end_unready": 1.0}


class Service:
    """A supervising process and what it is seen to do."""

    def __init__(self, process: subprocess.Popen[str], journal: Path) -> None:
        self.process = process
        self._journal = journal
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self._read_errors)
        self._reader.start()

    @property
    def journal(self) -> Sequence[str]:
        """What the tiers noted."""
        return self._journal.read_text(encoding="utf-8").splitlines() if self._journal.exists() else []

    def pids(self, name: str, what: str = "started") -> Sequence[int]:
        """The process ids of a tier's runs, or of their children."""
        return [int(line.split()[2]) for line in self.journal if line.startswith(f"{name} {what}")]

    def logged(self, event: str) -> Sequence[Mapping[str, Any]]:
        """The supervisor's log lines of one kind."""
        lines = [json.loads(line) for line in self.errors if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def until_ready(self) -> None:
        """Wait for the ready line."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n", self.errors

    def end(self) -> int:
        """Wait until it has ended. Returns: the exit code."""
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=30)
        return code

    def all_pids(self) -> Sequence[int]:
        """Every process that was started below it."""
        return [int(line.split()[2]) for line in self.journal if line.split()[1] in ("started", "child")]

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(line.rstrip("\n") for line in iter(self.process.stderr.readline, ""))


@contextmanager
def service(
    tmp_path: Path, stages: Mapping[str, Sequence[str]], patience: Mapping[str, Any] | None = None
) -> Iterator[Service]:
    """Supervise tiers, one a stage, given by their names and behaviours."""
    journal = tmp_path / "journal"
    command = [sys.executable, "-m", "tests.cli.scripted_service"]
    described = [[name, free_port(), str(journal), *behaviours] for name, behaviours in stages.items()]
    command += [json.dumps(described), json.dumps({**QUICK, **(patience or {})})]
    environ = os.environ | {"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'protos'}"}
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    running = Service(process, journal)
    try:
        yield running
    finally:
        process.kill()
        for pid in running.all_pids():
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        running.end()


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for a condition; fail when it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def free_port() -> str:
    """A port that nothing uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def main() -> int:
    """Supervise the tiers of the command line; returns the exit code."""
    configure_logs("up")
    stages = [
        [
            Tier(
                name=arguments[0],
                argv=[sys.executable, str(PROGRAM), *arguments],
                env=os.environ,
                probe=GrpcHealthProbe(f"127.0.0.1:{arguments[1]}"),
                drain_seconds=1.0,
            )
        ]
        for arguments in json.loads(sys.argv[1])
    ]
    times = json.loads(sys.argv[2])
    patience = Patience(tuple(times["pauses"]), times["healthy"], times["end"], times["end_unready"])
    try:
        return asyncio.run(supervise(stages, "ready", patience))
    except TierFailed as failure:
        print(failure, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
