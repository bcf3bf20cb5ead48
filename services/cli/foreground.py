"""Runs a command as the terminal's foreground process group: ``python -m services.cli.foreground COMMAND…``.

Ctrl-C reaches every process of that group. Under make, that would end make itself with an error, although the service
it runs stops cleanly. In a group of its own the command alone is interrupted, and make sees its exit code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

_TERMINAL = 0


def run_in_foreground(command: Sequence[str]) -> int:
    """Run ``command`` in the foreground of the terminal on standard input; returns its exit code as a shell gives it.

    SIGTERM and SIGHUP are passed on to it. Ctrl-Z stops it together with the caller's group, as a shell expects.
    """
    own_group = os.getpgrp()
    # The kernel stops a background group that takes the terminal, unless it ignores this signal.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    child = subprocess.Popen(command, process_group=0)

    def pass_on(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGHUP, pass_on)
    try:
        os.tcsetpgrp(_TERMINAL, child.pid)
        while True:
            _, status = os.waitpid(child.pid, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            os.tcsetpgrp(_TERMINAL, own_group)
            os.killpg(own_group, signal.SIGSTOP)
            # Here the shell has continued the group, and given it the terminal again.
            os.tcsetpgrp(_TERMINAL, child.pid)
            os.killpg(child.pid, signal.SIGCONT)
    finally:
        os.tcsetpgrp(_TERMINAL, own_group)


def main() -> int:
    """Run the command on the command line; returns the exit code."""
    command = sys.argv[1:]
    if not os.isatty(_TERMINAL) or os.tcgetpgrp(_TERMINAL) != os.getpgrp():
        os.execvp(command[0], command)
    return run_in_foreground(command)


if __name__ == "__main__":
    sys.exit(main())
