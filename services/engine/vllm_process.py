"""What vLLM's own processes do first, through vLLM's plugin entry point.

The entry point `vllm.general_plugins` (pyproject.toml) runs `isolate` in each
process that vLLM starts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait

from services.chassis.logs import configure_logs


def isolate() -> None:
    """Detach a vLLM process from the terminal and tie its life to its parent's.

    Ctrl-C reaches the whole process group, and vLLM's processes die of it: a
    drain would lose its engine in its first millisecond. A session of their own
    shields them. In turn they must not outlive a parent that was killed.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    configure_logs("engine")
    if os.getpgrp() != os.getpid():
        os.setsid()

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=end_with_parent, name="parent-watch", daemon=True).start()
