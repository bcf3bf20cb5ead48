"""Commands that end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from services.cli.tied import python_module, tied_command
from tests.cli.scripted_service import REPOSITORY, is_alive, wait_until

# Starts a tied command and goes on; a test kills it.
PARENT = """
import subprocess, sys, time
from services.cli.tied import tied_command
child = subprocess.Popen(tied_command([sys.executable, "-c", "import time; print('on', flush=True); time.sleep(1000)"]))
print(child.pid, flush=True)
time.sleep(1000)
"""


def test_command_ends_with_its_parent() -> None:
    """After a SIGKILL of the parent the kernel ends the command with SIGTERM."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    lines = sorted([parent.stdout.readline().strip(), parent.stdout.readline().strip()])
    assert lines[1] == "on"
    pid = int(lines[0])
    assert is_alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not is_alive(pid))


def test_command_is_not_run_for_a_parent_that_has_gone() -> None:
    """A command whose parent went before it could be tied never starts."""
    command = [*python_module("services.cli.tied"), "1", sys.executable, "-c", "print('ran')"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "")


def test_command_takes_the_process_over() -> None:
    """The tied command has the process id that its parent sees, and its exit code."""
    command = tied_command([sys.executable, "-c", "import os; print(os.getpid()); raise SystemExit(7)"])
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        output, _ = process.communicate()
    assert (process.returncode, int(output)) == (7, process.pid)


def test_folder_of_the_same_name_is_not_run(tmp_path: Path) -> None:
    """Where the user stands in a project that has a folder `services` of its own, ours is run all the same."""
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "__init__.py").write_text("raise SystemExit('the wrong services')")
    # As a console script, this process has its own folder on the path, not the user's.
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path[0] = {str(REPOSITORY)!r}\n"
        "import subprocess\n"
        "from services.cli.tied import tied_command\n"
        "sys.exit(subprocess.call(tied_command([sys.executable, '-c', 'pass'])))\n"
    )
    environ = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
