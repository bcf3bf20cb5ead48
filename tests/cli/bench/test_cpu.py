"""CPU time of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.cli.arguments import UsageError
from services.cli.bench.cpu import CpuMeter
from services.cli.bench.options import Processes

# Spends CPU time on demand, in the place that the argument names, and says so.
WORKER = """
import subprocess, sys, threading, time

def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def spend_in_thread(seconds):
    thread = threading.Thread(target=spend, args=(seconds,))
    thread.start()
    thread.join()

def spend_in_child(seconds):
    subprocess.run([sys.executable, "-c", f"import time\\nwhile time.process_time() < {seconds}: pass"], check=True)

for line in sys.stdin:
    where, seconds = line.split()
    {"here": spend, "thread": spend_in_thread, "child": spend_in_child}[where](float(seconds))
    print("done", flush=True)
"""


@contextmanager
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process that spends CPU time on demand."""
    command = [sys.executable, "-c", WORKER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def spend(process: subprocess.Popen[str], where: str, seconds: float) -> None:
    """Have it spend time."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{where} {seconds}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


@pytest.mark.parametrize("where", ["here", "thread"])
def test_time_of_all_threads_counts(where: str) -> None:
    """What a process spends after the meter is made counts, in a thread that has ended, too."""
    with worker() as process:
        spend(process, "here", 0.2)
        meter = CpuMeter([Processes("worker", (process.pid,))], with_children=False)
        spend(process, where, 0.3)
        (use,) = meter.used()
    assert use.name == "worker" and use.pids == (process.pid,)
    assert use.seconds == pytest.approx(0.3, abs=0.08)


@pytest.mark.parametrize(("with_children", "seconds"), [(True, 0.3), (False, 0.0)])
def test_children_count_when_they_are_to(with_children: bool, seconds: float) -> None:
    """The time of a child that came and went is its parent's only where that is asked for."""
    with worker() as process:
        meter = CpuMeter([Processes("worker", (process.pid,))], with_children)
        spend(process, "child", 0.3)
        (use,) = meter.used()
    assert use.seconds == pytest.approx(seconds, abs=0.08)


def test_running_child_counts() -> None:
    """A child that still runs counts from the meter's making on."""
    children = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", children], start_new_session=True) as parent:
        try:
            time.sleep(0.5)
            meter = CpuMeter([Processes("tree", (parent.pid,))], with_children=True)
            alone = CpuMeter([Processes("parent", (parent.pid,))], with_children=False)
            time.sleep(0.6)
            (tree,), (own,) = meter.used(), alone.used()
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert tree.seconds is not None and tree.seconds > 0.1
    assert own.seconds is not None and own.seconds < 0.05


def test_names_are_apart_and_their_pids_together() -> None:
    """Each name has the sum of its processes."""
    with worker() as one, worker() as two, worker() as three:
        meter = CpuMeter([Processes("pair", (one.pid, two.pid)), Processes("single", (three.pid,))], False)
        threads = [threading.Thread(target=spend, args=(process, "here", 0.2)) for process in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pair, single = meter.used()
    assert pair.seconds == pytest.approx(0.4, abs=0.1)
    assert single.seconds == pytest.approx(0.0, abs=0.03)


def test_process_that_is_not_there_is_refused() -> None:
    """A pid that nobody has is told in one line, before any load."""
    with worker() as process:
        pass
    with pytest.raises(UsageError, match=f"there is no process {process.pid} for --pid worker"):
        CpuMeter([Processes("worker", (process.pid,))], with_children=False)


def test_process_that_ends_has_no_figure() -> None:
    """What a process used before it died is not known, and not taken for nothing."""
    with worker() as process:
        meter = CpuMeter([Processes("worker", (process.pid,))], with_children=False)
    (use,) = meter.used()
    assert use.seconds is None
