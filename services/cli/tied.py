"""Runs a command that ends with its parent: ``python -m services.cli.tied PARENT COMMAND…``.

A supervisor that is killed with SIGKILL can end nothing any more, so the kernel does it: prctl(2), PR_SET_PDEATHSIG.
The setting survives exec. A process of its own sets it, because running Python between fork and exec is not safe
beside gRPC's threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def tied_command(command: list[str]) -> list[str]:
    """The command line that runs ``command`` as a process that gets SIGTERM when the calling process ends."""
    return [*python_module("services.cli.tied"), str(os.getpid()), *command]


def python_module(name: str) -> list[str]:
    """The command line that runs a module of this installation by this Python."""
    # Without -P, a folder named `services` where the user stands would be run in place of ours. Where this process
    # itself looks there, the installation may be just that folder.
    safe_path = [] if os.getcwd() in sys.path or "" in sys.path else ["-P"]
    return [sys.executable, *safe_path, "-m", name]


def main() -> int:
    """Take the command's place, unless the parent has gone already; returns the exit code of that."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # It may have gone before the kernel was told to watch it.
    if os.getppid() == parent:
        os.execv(command[0], command)
    return 128 + signal.SIGTERM


if __name__ == "__main__":
    sys.exit(main())
