"""The processes that vLLM started below this one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.chassis.waiting import until


def vllm_processes() -> dict[str, list[int]]:
    """The ids of this process's descendants that vLLM named, by name."""
    found: dict[str, list[int]] = {}
    pending = [os.getpid()]
    while pending:
        for task in Path(f"/proc/{pending.pop()}/task").glob("*/children"):
            for pid in map(int, _text(task).split()):
                pending.append(pid)
                name = _text(Path(f"/proc/{pid}/cmdline")).split("\0")[0].strip()
                if name.startswith("VLLM::"):
                    found.setdefault(name.removeprefix("VLLM::"), []).append(pid)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not yet reaped does not."""
    status = _text(Path(f"/proc/{pid}/stat"))
    return bool(status) and status.rpartition(")")[2].split()[0] != "Z"


async def all_gone(pids: list[int], seconds: float) -> bool:
    """Whether these processes have ended within the time."""
    with suppress(TimeoutError):
        await until(lambda: not any(map(alive, pids)), seconds)
    return not any(map(alive, pids))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        # It ended while we looked.
        return ""
