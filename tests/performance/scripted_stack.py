"""All tiers as processes of their own, over a scripted engine instead of vLLM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.service import free_ports, wait_until

REPOSITORY = Path(__file__).parents[2]
MODEL = "scripted"


@dataclass(frozen=True, slots=True)
class Stack:
    """The running tiers: the frontend's URL, and ids of their processes by tier."""

    url: str
    processes: Mapping[str, Sequence[int]]


@contextmanager
def scripted_stack(
    model: Path,
    log_directory: Path,
    *,
    streams: int,
    step_seconds: float,
    tokenizers: int = 1,
    tree: Path = REPOSITORY,
    engine_module: str = "tests.performance.scripted_engine_process",
    settings: Mapping[str, Mapping[str, object]] | None = None,
) -> Iterator[Stack]:
    """Start engine, tokenizers and frontend, wait until they serve, and end them.

    Args:
        model: whose tokenizer is used.
        streams: that the engine runs at a time.
        step_seconds: time of a step of the engine, in which each stream gets a token.
        tree: the working tree whose services run.
        engine_module: the engine's process, which gets `streams` and `step_seconds` as arguments.
        settings: more settings of a tier, by its name.
    """
    engine, frontend, *ports = free_ports(3 + 2 * tokenizers)
    texts, metrics = ports[:tokenizers], ports[tokenizers:]
    with ExitStack() as stack:

        def start(tier: str, *command: str, **given: object) -> int:
            log = stack.enter_context((log_directory / f"{tier}-{len(stack_ids)}.log").open("wb"))
            prefix = f"OMNI_{tier.upper()}_"
            environment = {name: value for name, value in os.environ.items() if not name.startswith("OMNI_")}
            named = {**given, **more.get(tier, {})}
            environment |= {f"{prefix}{name.upper()}": str(value) for name, value in named.items()}
            # This tree comes last, for the scripted engine's process where the other has none.
            environment["PYTHONPATH"] = os.pathsep.join(map(str, (tree, tree / "protos", REPOSITORY)))
            process = subprocess.Popen([sys.executable, "-m", *command], stderr=log, env=environment, cwd=tree)
            stack.callback(_end, process)
            stack_ids.append(process.pid)
            return process.pid

        stack_ids: list[int] = []
        more = settings or {}
        places = {"port": engine, "metrics_port": metrics[-1], "max_generations": 4 * streams}
        scripted = (engine_module, str(streams), str(step_seconds))
        engines = [start("engine", *scripted, model=model, served_name=MODEL, **places)]
        starts = zip(texts, metrics, strict=False)
        readers = [
            start("tokenizer", "services.tokenizer", engine=f"127.0.0.1:{engine}", port=port, metrics_port=metrics_port)
            for port, metrics_port in starts
        ]
        addresses = ",".join(f"127.0.0.1:{port}" for port in texts)
        frontends = [start("frontend", "services.frontend", tokenizers=addresses, port=frontend)]
        url = f"http://127.0.0.1:{frontend}"
        wait_until(lambda: _is_ready(url, tokenizers), 60, "the tiers do not serve")
        yield Stack(url, {"engine": engines, "tokenizer": readers, "frontend": frontends})


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


def _is_ready(url: str, tokenizers: int) -> bool:
    try:
        if httpx.get(f"{url}/health/ready").status_code != 200:
            return False
        return f"streamomni:text_links_connected {float(tokenizers)}" in httpx.get(f"{url}/metrics").text
    except httpx.TransportError:
        return False
