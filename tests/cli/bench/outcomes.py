"""Outcomes of requests, as a run records them."""

from __future__ import annotations

from services.cli.bench.recording import Ending, Outcome, Recorder
from services.cli.bench.token_stream import Failure, TokenStream
from tests.cli.bench.sse_server import DONE, token, usage


def outcome(
    *times: float,
    tokens: int | None = None,
    prompt_tokens: int = 5,
    done_at: float | None = None,
    sent_at: float = 0.0,
    choices: int = 1,
) -> Outcome:
    """A request whose chunks came at these times, in each of its choices, and its end at `done_at`."""
    stream = TokenStream(choices, None)
    for now in times:
        for index in range(choices):
            stream.feed(token(index=index), now)
    if tokens is not None:
        stream.feed(usage(tokens, prompt_tokens), times[-1] if times else 0.0)
    if done_at is not None:
        stream.feed(DONE, done_at)
    return Outcome(sent_at, stream)


def record(recorder: Recorder, ended: Outcome, ending: Ending, failure: Failure | None = None) -> None:
    """Record a request that is over."""
    recorder.begin(ended)
    recorder.end(ended, ending, failure)
