"""One line on standard error that tells how far a run is."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import perf_counter

from services.cli.bench.recording import Recorder

_ON_TERMINAL_S = 1.0
_IN_LOG_S = 10.0


@asynccontextmanager
async def progress(recorder: Recorder, *, requests: int | None, quiet: bool) -> AsyncGenerator[None, None]:
    """Show the line while the block runs: rewritten each second on a terminal, else a new one each ten seconds."""
    if quiet:
        yield
        return
    showing = asyncio.create_task(_show(recorder, requests))
    try:
        yield
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


async def _show(recorder: Recorder, requests: int | None) -> None:
    start = before = perf_counter()
    chunks_before = 0
    is_terminal = sys.stderr.isatty()
    while True:
        await asyncio.sleep(_ON_TERMINAL_S if is_terminal else _IN_LOG_S)
        now, chunks = perf_counter(), recorder.chunks
        line = line_of(recorder, requests, now - start, (chunks - chunks_before) / (now - before))
        before, chunks_before = now, chunks
        print(f"\r\x1b[K{line}" if is_terminal else line, end="" if is_terminal else "\n", file=sys.stderr, flush=True)


def line_of(recorder: Recorder, requests: int | None, seconds: float, chunks_per_s: float) -> str:
    """Return the line."""
    ended = len(recorder.outcomes)
    of_all = "" if requests is None else f" of {requests}"
    return (
        f"{seconds:.0f} s: {ended}{of_all} requests over, {recorder.running} running, {recorder.failed} failed,"
        f" {chunks_per_s:.0f} chunks/s"
    )
