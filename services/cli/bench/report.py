"""What a run found, as an object for programs.

Latencies are those of all requests that got so far: time to the first token and gaps also of cancelled and unfinished
ones, end to end and the gap per token of completed ones. Failed requests have no latencies, but the tokens that came
count. Prompt tokens are those of answers with usage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.cli.bench.cpu import CpuUse
from services.cli.bench.goodput import goodput
from services.cli.bench.options import Options
from services.cli.bench.recording import Ending, Outcome, Recorder
from services.cli.bench.statistics import percentile, summary_ms

_READ = (Ending.COMPLETED, Ending.CANCELLED, Ending.UNFINISHED)
# Beyond these the figures tell of the generator, too.
_MOST_CORES = 0.7
_MOST_LAG_MS = 10.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is over.

    Args:
        url: the server's.
        model: its name.
        started_at: the wall clock's time at the start.
        duration_s: from the first request to the end.
        interrupted: the user ended it.
        cpu: of the processes that were asked for.
        generator_cpu_s: of this process.
    """

    url: str
    model: str
    options: Options
    recorder: Recorder
    started_at: datetime
    duration_s: float
    interrupted: bool
    cpu: Sequence[CpuUse]
    generator_cpu_s: float


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Tokens of all answers.

    Args:
        counted: by the server's usage.
        estimated: of streams that were left, and of servers that tell no usage: their chunks, times the tokens that
            a chunk has in the answers that were counted.
    """

    counted: int
    estimated: int
    chunks: int
    per_chunk: float | None

    @property
    def all(self) -> int:
        return self.counted + self.estimated


def report(run: Run) -> dict[str, Any]:
    """Return everything that was found; times end in `_s` or `_ms`, and what was not measured is None."""
    recorder, seconds = run.recorder, run.duration_s
    tokens, prompt_tokens, cached_tokens = _count(recorder), 0, 0
    completed, read = recorder.ended(Ending.COMPLETED), recorder.ended(*_READ)
    for outcome in read:
        if outcome.stream.usage is not None:
            prompt_tokens += outcome.stream.usage.prompt_tokens
            cached_tokens += outcome.stream.usage.cached_tokens or 0
    return {
        "url": run.url,
        "model": run.model,
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "duration_s": round(seconds, 4),
        "interrupted": run.interrupted,
        "load": _load(run.options),
        "requests": {
            "sent": len(recorder.outcomes),
            **{ending.value: len(recorder.ended(ending)) for ending in Ending},
            "completed_per_s": round(len(completed) / seconds, 4),
        },
        "tokens": {
            "completion": tokens.all,
            "completion_estimated": tokens.estimated,
            "completion_per_s": round(tokens.all / seconds, 2),
            "chunks": tokens.chunks,
            "per_chunk": tokens.per_chunk,
            "prompt": prompt_tokens,
            "prompt_cached": cached_tokens,
            "prompt_per_s": round(prompt_tokens / seconds, 2),
        },
        "ttft_ms": summary_ms(outcome.ttft_s for outcome in read),
        "itl_ms": summary_ms(gap for outcome in read for gap in outcome.gaps_s),
        "gap_per_token_ms": summary_ms(outcome.gap_per_token_s for outcome in completed),
        "e2e_ms": summary_ms(outcome.e2e_s for outcome in completed),
        "schedule_lag_ms": summary_ms(recorder.lags_s),
        "goodput": goodput(run.options.goodput, recorder, seconds) if run.options.goodput else None,
        "errors": _errors(recorder.ended(Ending.FAILED)),
        "cpu": _cpu(run.cpu, tokens.all, seconds) if run.cpu else None,
        "generator": _cpu_figures(run.generator_cpu_s, tokens.all, seconds),
        "warnings": list(_warnings(run, tokens)),
    }


def _load(options: Options) -> Mapping[str, Any]:
    prefix = options.shared_prefix
    return {
        "endpoint": options.endpoint,
        "concurrency": options.concurrency,
        "request_rate": options.request_rate,
        "burstiness": options.burstiness if options.request_rate is not None else None,
        "requests": options.requests,
        "duration_s": options.duration_s,
        "trace": str(options.trace) if options.trace else None,
        "prompt_tokens": None if options.prompt_characters else str(options.prompt_tokens),
        "prompt_characters": str(options.prompt_characters) if options.prompt_characters else None,
        "vocabulary": options.vocabulary,
        "output_tokens": str(options.output_tokens),
        "shared_prefix": {"tokens": prefix.tokens, "share": prefix.share} if prefix else None,
        "cancel_share": options.cancel_share,
        "extra_body": dict(options.extra_body),
        "warmup": options.warmup,
        "timeout_s": options.timeout_s,
        "seed": options.seed,
    }


def _count(recorder: Recorder) -> _Tokens:
    counted = counted_chunks = other_chunks = 0
    for outcome in recorder.outcomes:
        if outcome.stream.usage is not None:
            counted += outcome.stream.usage.completion_tokens
            counted_chunks += outcome.stream.chunks
        else:
            other_chunks += outcome.stream.chunks
    per_chunk = counted / counted_chunks if counted_chunks else None
    estimated = round(other_chunks * (per_chunk or 1.0))
    return _Tokens(counted, estimated, counted_chunks + other_chunks, per_chunk and round(per_chunk, 4))


def _errors(failed: Sequence[Outcome]) -> Sequence[Mapping[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {}
    for outcome in failed:
        if outcome.failure is not None:
            new = {"kind": outcome.failure.kind, "count": 0, "example": outcome.failure.message}
            kinds.setdefault(outcome.failure.kind, new)["count"] += 1
    return sorted(kinds.values(), key=lambda entry: -int(entry["count"]))


def _cpu(uses: Sequence[CpuUse], tokens: int, seconds: float) -> Mapping[str, Any]:
    known = [use.seconds for use in uses if use.seconds is not None]
    total = sum(known) if len(known) == len(uses) else None
    processes = {use.name: {"pids": list(use.pids)} | _cpu_figures(use.seconds, tokens, seconds) for use in uses}
    return {"processes": processes, "total": _cpu_figures(total, tokens, seconds)}


def _cpu_figures(cpu_s: float | None, tokens: int, seconds: float) -> dict[str, float | None]:
    if cpu_s is None:
        return {"cpu_s": None, "cores": None, "us_per_token": None}
    per_token = round(cpu_s * 1e6 / tokens, 2) if tokens else None
    return {"cpu_s": round(cpu_s, 4), "cores": round(cpu_s / seconds, 4), "us_per_token": per_token}


def _warnings(run: Run, tokens: _Tokens) -> Sequence[str]:
    found = []
    if (cores := run.generator_cpu_s / run.duration_s) > _MOST_CORES:
        found.append(f"the generator used {cores:.2f} of one core: latencies hold delays of its own")
    lags = sorted(run.recorder.lags_s)
    if lags and (lag_ms := percentile(lags, 99) * 1000) > _MOST_LAG_MS:
        found.append(f"requests were sent late (p99 {lag_ms:.0f} ms): this machine could not keep the rate")
    if without := sum(outcome.stream.usage is None for outcome in run.recorder.ended(Ending.COMPLETED)):
        found.append(f"{without} answers came without usage: their tokens are estimated by their chunks")
    found += [
        f"a process of {use.name} ended before the run did: no CPU figure" for use in run.cpu if not _is_known(use)
    ]
    return found


def _is_known(use: CpuUse) -> bool:
    return use.seconds is not None
