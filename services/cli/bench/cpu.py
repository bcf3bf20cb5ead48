"""CPU time of processes, all their threads included: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from services.cli.arguments import UsageError
from services.cli.bench.options import Processes

# Places of fields after the name, which may hold spaces and brackets: state is the first.
_UTIME, _STIME, _CUTIME, _CSTIME, _STARTTIME = 11, 12, 13, 14, 19


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU time under one name; None when a process ended before the run did."""

    name: str
    pids: tuple[int, ...]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class _Times:
    started: int
    own: float
    of_reaped_children: float


class CpuMeter:
    """Measures from its making on.

    Args:
        processes: whose time.
        with_children: also that of all processes that they started, running or ended.

    Raises:
        UsageError: a process is not there.
    """

    def __init__(self, processes: Sequence[Processes], with_children: bool) -> None:
        self._processes = processes
        self._with_children = with_children
        self._before = [[self._tree(pid, group.name) for pid in group.pids] for group in processes]

    def used(self) -> Sequence[CpuUse]:
        """Return what each name has used so far."""
        return [
            CpuUse(group.name, group.pids, self._difference(group, before))
            for group, before in zip(self._processes, self._before, strict=True)
        ]

    def _difference(self, group: Processes, before: Sequence[_Times]) -> float | None:
        seconds = 0.0
        for pid, then in zip(group.pids, before, strict=True):
            try:
                now = self._tree(pid, group.name)
            except UsageError:
                return None
            if now.started != then.started:
                # Another process got the number.
                return None
            seconds += now.own - then.own
        return seconds

    def _tree(self, pid: int, name: str) -> _Times:
        """Return the times of a process; with its children, `own` is that of the whole tree, its dead included."""
        times = _read(pid)
        if times is None:
            raise UsageError(f"there is no process {pid} for --pid {name}; give the pid of one that runs")
        if not self._with_children:
            return times
        total = times.own + times.of_reaped_children
        waiting = _children(pid)
        while waiting:
            child = waiting.pop()
            if (of_child := _read(child)) is not None:
                total += of_child.own + of_child.of_reaped_children
                waiting += _children(child)
        return _Times(times.started, total, 0.0)


def _read(pid: int) -> _Times | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    own = (int(fields[_UTIME]) + int(fields[_STIME])) / ticks
    return _Times(int(fields[_STARTTIME]), own, (int(fields[_CUTIME]) + int(fields[_CSTIME])) / ticks)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (thread / "children").read_text(encoding="ascii").split())
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found
