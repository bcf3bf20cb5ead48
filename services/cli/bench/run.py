"""A whole run: find the model, warm up, send, and tell what was found."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

from services.cli.arguments import CommandError
from services.cli.bench.connection import RequestFailed
from services.cli.bench.connection_pool import ConnectionPool
from services.cli.bench.cpu import CpuMeter
from services.cli.bench.load import Load
from services.cli.bench.options import Options
from services.cli.bench.plan import Plan
from services.cli.bench.progress import progress
from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.report import Run, report
from services.cli.bench.target import first_model, parse_target
from services.cli.bench.trace import read_trace


async def run_bench(options: Options, *, quiet: bool) -> dict[str, Any]:
    """Run a load and return the report of it.

    Raises:
        UsageError: the URL, the trace or a pid is not one.
        CommandError: the server does not answer, or every request of the warm-up failed.
    """
    trace = read_trace(options.trace, options.endpoint) if options.trace else ()
    target = parse_target(options.url, options.api_key, options.trusted)
    CpuMeter(options.processes, options.with_children)
    model = options.model or await first_model(target)
    plan, recorder = Plan(options, model, trace), Recorder()
    _allow_many_connections()
    with closing(ConnectionPool(target, plan.path)) as connections:
        try:
            await connections.open_one()
        except RequestFailed as error:
            raise CommandError(f"no server answers at {target.url} ({error}); name it with --url") from error
        load = Load(options, connections)
        _check_warm_up(await load.warm_up(plan.warmup()))
        meter = CpuMeter(options.processes, options.with_children)
        started_at, cpu_before = datetime.now(UTC), time.process_time()
        async with progress(recorder, requests=len(trace) or options.requests, quiet=quiet):
            with _without_collections():
                duration_s = await load.run(plan.requests(), recorder)
        generator_cpu_s, cpu = time.process_time() - cpu_before, meter.used()
    return report(
        Run(
            url=target.url,
            model=model,
            options=options,
            recorder=recorder,
            started_at=started_at,
            duration_s=duration_s,
            interrupted=load.interrupted,
            cpu=cpu,
            generator_cpu_s=generator_cpu_s,
        )
    )


@contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from pausing what takes the times: a run leaves next to no circles behind."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _check_warm_up(recorder: Recorder) -> None:
    failed = recorder.ended(Ending.FAILED)
    if failed and len(failed) == len(recorder.outcomes) and failed[0].failure is not None:
        failure = failed[0].failure
        raise CommandError(f"every request of the warm-up failed, the first with {failure.kind}: {failure.message}")


def _allow_many_connections() -> None:
    """Raise the limit on open files, which is 1024 on most machines, as far as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
