"""One run of a tier: a process in a session of its own, and all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from services.cli.tied import tied_command
from services.cli.tier import Tier


class TierProcess:
    """A running tier. `run_tier` makes it.

    Args:
        process: leads its own session.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._descriptor, self._reap)

    @property
    def pid(self) -> int:
        """Its process id, and that of its session."""
        return self._process.pid

    async def wait(self) -> int:
        """Wait until it has ended. Returns: its exit code, or the negative number of the signal that ended it."""
        await self._ended.wait()
        return self._process.wait()

    def terminate(self) -> None:
        """Ask it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it and everything that it started, at once."""
        if self._ended.is_set():
            return
        # What it started may lead a session of its own.
        descendants = _descendants(self.pid)
        _kill_group(self.pid)
        for pid in descendants:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        # What is left of its group ends with it. Until it is waited for, no other group can get its number.
        _kill_group(self.pid)
        self._process.wait()
        self._ended.set()


@asynccontextmanager
async def run_tier(tier: Tier) -> AsyncGenerator[TierProcess, None]:
    """Start a tier; leaving the block kills it if it still runs.

    Its standard output goes to standard error: the supervisor's own output is one line for programs to read.
    """
    process = TierProcess(_start(tier))
    try:
        yield process
    finally:
        process.kill()
        await asyncio.shield(process.wait())


def _start(tier: Tier) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        tied_command(list(tier.argv)),
        env=dict(tier.env),
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
        # Ctrl-C reaches the terminal's process group; in this one it would end all tiers at once, undrained.
        start_new_session=True,
    )


def describe_exit(code: int) -> str:
    """Say how a process ended: by exit code, or by which signal."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _kill_group(number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)


def _descendants(root: int) -> list[int]:
    """The processes that `root` started, and those that they started."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        # Processes come and go meanwhile.
        with contextlib.suppress(OSError):
            # The name, in parentheses, may hold anything; the parent's id is the second field behind it.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found
