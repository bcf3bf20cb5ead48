"""An engine service whose scripted answers are exact texts: `python -m tests.e2e.page.engine_process STREAMS SECONDS`.

The last user message decides which text it says (`answers.py`) and how fast. What the prompt holds of the answer
already, as when an answer is continued, is not said again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from tokenizers import Tokenizer

from services.chassis.logs import configure_logs
from services.chassis.stop import run_until_stopped
from services.engine.__main__ import serve
from services.engine.port import EngineRequest, Limits
from services.engine.settings import EngineSettings
from tests.e2e.page.answers import FORMATTED, long_answer, long_code
from tests.fakes.scripted_engine import ScriptedLoader, Shape

_TURN = re.compile(r"<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)
_LIMITS = Limits(context_length=16384, vocab_size=49152, max_logprobs=20, supports_priority=False)
_SLOW_SECONDS = 0.03


class Answers:
    """The script: what is said to a prompt."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._numbers = count(1)
        self.loader: ScriptedLoader | None = None
        self.step_seconds = 0.0

    def __call__(self, request: EngineRequest) -> Iterator[int]:
        """Yield the token ids of the answer and then end tokens without end."""
        prompt = self._tokenizer.decode(list(request.prompt_token_ids), skip_special_tokens=False)
        turns = _TURN.findall(prompt)
        # The engine's own first try has no turn at all.
        asked = next((text for role, text in reversed(turns) if role == "user"), "").strip()
        begun = turns[-1][1] if turns and turns[-1][0] == "assistant" else ""
        self._set_pace(asked)
        text = self._text(asked, prompt)
        yield from self._tokenizer.encode(text.removeprefix(begun), add_special_tokens=False).ids
        while True:
            yield 2

    def _text(self, asked: str, prompt: str) -> str:
        if asked in FORMATTED:
            return FORMATTED[asked]
        if asked == "say a lot":
            return long_answer()
        if asked == "write much code":
            return f"```python\n{long_code()}```"
        if asked == "say which":
            return f"This is answer {next(self._numbers)}."
        if asked == "show the prompt":
            return f"```\n{prompt}\n```"
        return f"You said: {asked[:80]}"

    def _set_pace(self, asked: str) -> None:
        assert self.loader is not None
        slow, fast = asked == "count slowly", asked in ("say a lot", "write much code")
        self.loader.engine.tick_seconds = _SLOW_SECONDS if slow else 0 if fast else self.step_seconds


def main(streams: int, step_seconds: float) -> None:
    """Serve until a signal comes."""
    settings = EngineSettings.load()
    configure_logs("engine", settings.log_level)
    shape = Shape(_LIMITS, max_num_seqs=streams, kv_cache_tokens=streams * _LIMITS.context_length)
    answers = Answers(Tokenizer.from_file(str(Path(settings.model) / "tokenizer.json")))
    loader = ScriptedLoader(Path(settings.model), shape=shape, script=answers, tick_seconds=step_seconds)
    answers.loader, answers.step_seconds = loader, step_seconds
    run_until_stopped(lambda stopping: serve(settings, loader, stopping))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
