"""Sending requests at their times, and stopping."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import closing
from itertools import pairwise
from time import perf_counter

import pytest

from services.cli.bench.connection_pool import ConnectionPool
from services.cli.bench.load import Load
from services.cli.bench.plan import Plan
from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.target import parse_target
from services.cli.bench.trace import TraceEntry
from tests.cli.bench.run_options import options
from tests.cli.bench.sse_server import CHUNKED_HEAD, Exchange, Script, SseServer, chunked, sized, sse_server, token


async def run(
    script: Script, *arguments: str, trace: list[TraceEntry] | None = None
) -> tuple[SseServer, Recorder, float]:
    """Run a load against a server. Returns: the server, what became of the requests, and the time it took."""
    async with sse_server(script) as server:
        given = options(*arguments)
        recorder, plan = Recorder(), Plan(given, "m", trace or ())
        with closing(ConnectionPool(parse_target(server.url, None), plan.path)) as pool:
            async with asyncio.timeout(20):
                seconds = await Load(given, pool).run(plan.requests(), recorder)
    return server, recorder, seconds


def endings(recorder: Recorder) -> dict[Ending, int]:
    """How many ended in each way."""
    return {ending: len(recorder.ended(ending)) for ending in Ending if recorder.ended(ending)}


async def forever(exchange: Exchange) -> None:
    """Stream tokens until the caller leaves."""
    await exchange.send(CHUNKED_HEAD)
    while True:
        await exchange.send(chunked(token()))
        await asyncio.sleep(0.01)


async def test_concurrency_is_kept() -> None:
    """So many run at a time, no more and no fewer, until all are sent, on as many connections."""
    server, recorder, _ = await run(
        lambda exchange: exchange.answer(3, 0.005), "--concurrency", "4", "--requests", "20"
    )
    assert endings(recorder) == {Ending.COMPLETED: 20}
    assert (server.most_running, server.connections, len(server.exchanges)) == (4, 4, 20)


async def test_rate_sends_at_its_times_whatever_runs() -> None:
    """With a rate, requests go out at their planned times even though none has ended."""
    arguments = ("--request-rate", "40", "--requests", "20")
    started: list[float] = []

    async def script(exchange: Exchange) -> None:
        started.append(perf_counter())
        await exchange.answer(2, 0.3)

    server, recorder, _ = await run(script, *arguments)
    planned = [request.at_s or 0.0 for request in Plan(options(*arguments), "m", ()).requests()]
    assert endings(recorder) == {Ending.COMPLETED: 20}
    assert server.most_running > 5
    assert len(recorder.lags_s) == 20
    assert [later - started[0] for later in started] == pytest.approx(planned, abs=0.15)


async def test_trace_sends_at_its_times() -> None:
    """Entries go out when the trace says."""
    started: list[float] = []

    async def script(exchange: Exchange) -> None:
        started.append(perf_counter())
        await exchange.answer(1)

    trace = [TraceEntry(at_s, "x", 4) for at_s in (0.0, 0.3, 0.35)]
    await run(script, "--trace", "x", trace=trace)
    first, second = (later - earlier for earlier, later in pairwise(started))
    assert first == pytest.approx(0.3, abs=0.1) and second == pytest.approx(0.05, abs=0.1)


async def test_duration_cuts_off_what_runs() -> None:
    """When the time is over, running requests are left, count as unfinished and keep their chunks."""
    _, recorder, seconds = await run(forever, "--concurrency", "3", "--duration", "0.4")
    assert endings(recorder) == {Ending.UNFINISHED: 3}
    assert 0.39 <= seconds < 1.5
    assert all(outcome.stream.chunks > 2 for outcome in recorder.outcomes)
    assert recorder.running == 0


async def test_duration_of_a_schedule_ends_it() -> None:
    """A rate without a number of requests ends with the time."""
    _, recorder, _ = await run(lambda exchange: exchange.answer(1), "--request-rate", "50", "--duration", "0.5")
    assert 8 < len(recorder.outcomes) < 50


async def test_rate_beyond_reach_still_reads_answers() -> None:
    """At a rate that nobody can keep, answers are read while requests go out, and the time ends the run."""
    _, recorder, seconds = await run(lambda exchange: exchange.answer(1), "--request-rate", "1e7", "--duration", "0.3")
    assert recorder.ended(Ending.COMPLETED)
    assert seconds < 3


async def test_interrupt_ends_the_run() -> None:
    """Ctrl-C stops the load and keeps what was measured so far."""
    asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGINT)
    _, recorder, seconds = await run(forever, "--concurrency", "2", "--requests", "5")
    assert endings(recorder) == {Ending.UNFINISHED: 2}
    assert seconds < 2


async def test_cancel_share_leaves_streams() -> None:
    """Requests that are to be left close their connections after their chunks; the others are read to the end."""
    arguments = ("--requests", "40", "--concurrency", "4", "--cancel-share", "0.5", "--output-tokens", "8")
    _, recorder, _ = await run(lambda exchange: exchange.answer(8, 0.002), *arguments)
    planned = [request.cancel_after for request in Plan(options(*arguments), "m", ()).requests()]
    left = sorted(cut for cut in planned if cut is not None)
    assert endings(recorder) == {Ending.COMPLETED: 40 - len(left), Ending.CANCELLED: len(left)}
    assert sorted(outcome.stream.chunks for outcome in recorder.ended(Ending.CANCELLED)) == left


async def test_slow_request_times_out() -> None:
    """A request that takes longer than it may is left and failed; the others go on."""

    async def script(exchange: Exchange) -> None:
        await (forever(exchange) if exchange.number == 0 else exchange.answer(1))

    _, recorder, _ = await run(script, "--requests", "3", "--timeout", "0.2")
    assert endings(recorder) == {Ending.FAILED: 1, Ending.COMPLETED: 2}
    (failed,) = recorder.ended(Ending.FAILED)
    assert failed.failure is not None
    assert (failed.failure.kind, failed.failure.message) == ("timeout", "no end after 0.2 s")


async def test_refusals_do_not_end_the_run() -> None:
    """Failed requests count, and the rest is sent all the same."""

    async def script(exchange: Exchange) -> None:
        await (exchange.send(sized("429 No", b"{}")) if exchange.number % 2 else exchange.answer(1))

    _, recorder, _ = await run(script, "--requests", "10")
    assert endings(recorder) == {Ending.COMPLETED: 5, Ending.FAILED: 5}


async def test_warm_up_is_not_recorded_with_the_rest() -> None:
    """Requests before the run have a record of their own."""
    async with sse_server(lambda exchange: exchange.answer(1)) as server:
        given = options("--warmup", "3", "--concurrency", "2")
        plan = Plan(given, "m", ())
        with closing(ConnectionPool(parse_target(server.url, None), plan.path)) as pool:
            warmup = await Load(given, pool).warm_up(plan.warmup())
    assert endings(warmup) == {Ending.COMPLETED: 3}
