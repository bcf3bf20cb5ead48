"""A small real tier: ``python scripted_tier.py NAME PORT JOURNAL [BEHAVIOUR…]``.

It serves grpc.health.v1 on its port and writes what happens to it, one line each, to the journal: ``NAME started PID``,
``NAME child PID``, ``NAME asked``, ``NAME ended``. Behaviours: ``slow`` takes 0.3 s to end, ``stubborn`` ignores
SIGTERM, ``parent`` starts a child in a session of its own that never ends, ``mute`` never serves, ``exit=CODE`` ends
at once with that code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc


def main() -> int:
    """Run the tier; returns its exit code."""
    name, port, journal, *behaviours = sys.argv[1:]
    asked = threading.Event()

    def note(text: str) -> None:
        # One write of one line: several processes append to the journal.
        with Path(journal).open("a", encoding="utf-8") as file:
            file.write(f"{name} {text}\n")

    signal.signal(signal.SIGTERM, lambda *_: None if "stubborn" in behaviours else asked.set())
    if "parent" in behaviours:
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        note(f"child {child.pid}")
    note(f"started {os.getpid()}")
    print(f"{name} says hello")
    sys.stdout.flush()
    for behaviour in behaviours:
        if behaviour.startswith("exit="):
            return int(behaviour.removeprefix("exit="))
    server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    serving = (
        health_pb2.HealthCheckResponse.NOT_SERVING if "mute" in behaviours else health_pb2.HealthCheckResponse.SERVING
    )
    servicer.set("", serving)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    while not asked.wait(0.05):
        pass
    note("asked")
    if "slow" in behaviours:
        time.sleep(0.3)
    note("ended")
    server.stop(None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
