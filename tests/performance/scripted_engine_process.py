"""An engine service on a scripted engine, as a process: `python -m tests.performance.scripted_engine_process`.

It reads the settings of the engine tier, and from its arguments how many streams run at a time and how long a step
takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from services.chassis.logs import configure_logs
from services.chassis.stop import run_until_stopped
from services.engine.__main__ import serve
from services.engine.port import EngineRequest, Limits
from services.engine.settings import EngineSettings
from tests.fakes.scripted_engine import ScriptedLoader, Shape

# Ids of ordinary words in SmolLM2's vocabulary, so that each token has text.
_WORDS = list(range(1000, 3000))


def words(request: EngineRequest) -> Iterator[int]:
    """Endless word tokens that begin at a place which the prompt decides."""
    begin = sum(request.prompt_token_ids) % len(_WORDS)
    return cycle(_WORDS[begin:] + _WORDS[:begin])


def main(streams: int, step_seconds: float) -> None:
    """Serve until a signal comes."""
    settings = EngineSettings.load()
    configure_logs("engine", settings.log_level)
    limits = Limits(context_length=32768, vocab_size=49152, max_logprobs=20, supports_priority=False)
    shape = Shape(limits, max_num_seqs=streams, kv_cache_tokens=streams * limits.context_length)
    loader = ScriptedLoader(Path(settings.model), shape=shape, script=words, tick_seconds=step_seconds)
    run_until_stopped(lambda stopping: serve(settings, loader, stopping))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
