"""What a run found, as text."""

from __future__ import annotations

from services.cli.bench.cpu import CpuUse
from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.report import report
from services.cli.bench.table import table
from services.cli.bench.token_stream import Failure
from tests.cli.bench.outcomes import outcome, record
from tests.cli.bench.runs import finished_run


def test_table_shows_all_figures() -> None:
    """Counts, tokens, goodput, latencies in columns, CPU by name, errors: each on its line."""
    recorder = Recorder()
    record(recorder, outcome(1.0, 2.0, 4.0, tokens=3, done_at=5.0), Ending.COMPLETED)
    record(recorder, outcome(), Ending.FAILED, Failure("HTTP 429", "wait"))
    run = finished_run(recorder, "--goodput", "ttft_ms=1000", cpu=[CpuUse("frontend", (1,), 0.9)], generator_cpu_s=0.03)
    assert table(report(run)).splitlines() == [
        "m at http://127.0.0.1:8000, chat, 10.00 s",
        "",
        "requests    1 completed, 0 cancelled, 0 unfinished, 1 failed; 0.10 completed a second",
        "output      3 tokens, 0.3 a second",
        "            3 chunks, 1.00 tokens in each",
        "input       5 tokens, 0.5 a second, 2 of them cached",
        "goodput     50.0 % of the requests within ttft_ms 1000; 0.10 a second",
        "",
        "ms                 mean      p50      p95      p99      max",
        "first token     1000.00  1000.00  1000.00  1000.00  1000.00",
        "between chunks  1500.00  1500.00  1950.00  1990.00  2000.00",
        "gap per token   1500.00  1500.00  1500.00  1500.00  1500.00",
        "end to end      5000.00  5000.00  5000.00  5000.00  5000.00",
        "",
        "CPU        seconds  cores  µs a token",
        "frontend      0.90   0.09   300000.00",
        "together      0.90   0.09   300000.00",
        "generator     0.03   0.00    10000.00",
        "",
        "1 × HTTP 429: wait",
    ]


def test_table_of_nothing_has_no_figures() -> None:
    """What was not measured is a dash, not a zero; what is estimated says so."""
    recorder = Recorder()
    record(recorder, outcome(1.0), Ending.UNFINISHED)
    lines = table(report(finished_run(recorder))).splitlines()
    assert "output      about 1 tokens, about 0.1 a second" in lines
    assert "end to end            –        –        –        –        –" in lines
