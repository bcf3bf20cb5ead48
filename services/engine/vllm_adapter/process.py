"""What vLLM's processes find and do first.

vLLM reads its environment at import, so that is prepared here, without it. The
entry point `vllm.general_plugins` (pyproject.toml) runs `isolate` in each process
that vLLM starts.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait

from services.chassis.logs import configure_logs

_ENVIRONMENT = {
    # gRPC and fork do not go together, and an engine is loaded again while gRPC is live.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    # Its lines go through the service's own log.
    "VLLM_CONFIGURE_LOGGING": "0",
}
_DEFAULT_ENVIRONMENT = {
    # Its processes talk to each other; other hosts have no business there unless told so.
    "VLLM_HOST_IP": "127.0.0.1",
}


def prepare_environment() -> None:
    """Set what vLLM reads from the environment, before it is imported."""
    os.environ.update(_ENVIRONMENT)
    for name, value in _DEFAULT_ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def isolate() -> None:
    """Detach a vLLM process from the terminal and tie its life to its parent's.

    Ctrl-C reaches the whole process group, and vLLM's processes die of it: a
    drain would lose its engine in its first millisecond. A session of their own
    shields them. In turn they must not outlive a parent that was killed. What is
    mended in vLLM's core is mended here, too.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    configure_logs("engine")
    # Imports vLLM, which the process has done long before it comes here.
    from services.engine.vllm_adapter.guidance_grammar import use_checked_grammars

    use_checked_grammars()
    if os.getpgrp() != os.getpid():
        os.setsid()

    def end_with_parent() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=end_with_parent, name="parent-watch", daemon=True).start()


def first_line(error: BaseException) -> str:
    """The first line of what vLLM says of an error, its class where it says nothing."""
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
