"""A running service: all tiers, started by `stream-omni up` as a user starts them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

STREAM_OMNI = str(Path(sys.executable).with_name("stream-omni"))
START_SECONDS = 180


@dataclass(frozen=True)
class Service:
    """Addresses and process of a running service."""

    process: subprocess.Popen[bytes]
    model: str
    url: str
    tokenizer: str
    engine: str
    engine_metrics_url: str
    log_file: Path
    ready_line: str

    def log(self) -> list[dict[str, object]]:
        """The log lines so far that are JSON objects."""
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def engine_metric(self, name: str) -> float:
        """The value of one of the engine's metrics, summed over its labels."""
        text = httpx.get(self.engine_metrics_url).text
        families = text_string_to_metric_families(text)
        return sum(sample.value for family in families for sample in family.samples if sample.name == name)

    def is_idle(self) -> bool:
        """Whether vLLM runs nothing, has nothing waiting and holds no KV cache."""
        names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc")
        return all(self.engine_metric(name) == 0 for name in names)

    def process_ids(self, title: str) -> list[int]:
        """Ids of this service's processes whose command line or name holds `title`."""
        return [pid for pid in descendants(self.process.pid) if title in _command_line(pid)]


@contextmanager
def running_service(model: Path, log_file: Path, *options: str) -> Iterator[Service]:
    """Start all tiers on free ports and wait for the ready line; afterwards end them and see that nothing is left."""
    ports = free_ports(5)
    names = ("--port", "--engine-port", "--tokenizer-port", "--engine-metrics-port", "--tokenizer-metrics-port")
    arguments = [part for name, port in zip(names, ports, strict=True) for part in (name, str(port))]
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [STREAM_OMNI, "up", str(model), *arguments, "--state-dir", str(log_file.with_suffix(".state")), *options],
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        ready_line = _read_line(process, START_SECONDS)
        assert ready_line, f"did not become ready:\n{log_file.read_text()[-4000:]}"
        port, engine_port, tokenizer_port, engine_metrics_port, _ = ports
        yield Service(
            process,
            model.name,
            f"http://127.0.0.1:{port}",
            f"127.0.0.1:{tokenizer_port}",
            f"127.0.0.1:{engine_port}",
            f"http://127.0.0.1:{engine_metrics_port}/metrics",
            log_file,
            ready_line,
        )
    finally:
        left = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == 0, f"ended with {process.returncode}"
    wait_until(lambda: not any(_is_alive(pid) for pid in left), 5, "processes are left behind")


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until(condition: Callable[[], bool], seconds: float, failure: str) -> float:
    """Wait until a condition holds and return the seconds that it took; fail after `seconds`."""
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < seconds, f"{failure} after {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - begin


def descendants(pid: int) -> list[int]:
    """Ids of all processes below one."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


def _is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _read_line(process: subprocess.Popen[bytes], seconds: float) -> str:
    """The process's first line, empty when it ends or the time is over before."""
    assert process.stdout is not None
    begin, text = time.monotonic(), b""
    while time.monotonic() - begin < seconds:
        readable, _, _ = select.select([process.stdout], [], [], 1)
        if readable:
            piece = os.read(process.stdout.fileno(), 4096)
            text += piece
            if b"\n" in text or not piece:
                return text.split(b"\n", 1)[0].decode()
    return ""
