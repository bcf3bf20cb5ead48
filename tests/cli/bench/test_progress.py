"""The line that tells how far a run is."""

from __future__ import annotations

import pytest

from services.cli.bench.progress import line_of, progress
from services.cli.bench.recording import Ending, Recorder
from services.cli.bench.token_stream import Failure
from tests.cli.bench.outcomes import outcome, record


@pytest.mark.parametrize(("requests", "of_all"), [(10, "2 of 10 requests over"), (None, "2 requests over")])
def test_line_counts(requests: int | None, of_all: str) -> None:
    """It tells time, requests and speed."""
    recorder = Recorder()
    recorder.begin(outcome(1.0))
    record(recorder, outcome(1.0), Ending.COMPLETED)
    record(recorder, outcome(), Ending.FAILED, Failure("timeout", ""))
    assert line_of(recorder, requests, 3.2, 41.7) == f"3 s: {of_all}, 1 running, 1 failed, 42 chunks/s"


@pytest.mark.parametrize("quiet", [True, False])
async def test_short_run_shows_nothing(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Where standard error is no terminal, nothing is printed in the first seconds, and nothing at the end."""
    async with progress(Recorder(), requests=1, quiet=quiet):
        pass
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
