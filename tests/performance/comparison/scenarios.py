"""The loads that both servers get."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

CONTEXT_LENGTH = 32768
MAX_NUM_SEQS = 256
PROMPT_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Load:
    """One run of `stream-omni bench`.

    Args:
        concurrency: requests under way at a time.
        requests: how many; `warmup` of the same kind come before and do not count.
        output_tokens: of each choice.
        prompt_characters: length of the prompts; None: 64 words.
        extra: more fields of each request.
    """

    concurrency: int
    requests: int
    output_tokens: int
    warmup: int = 0
    prompt_characters: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Options of the command."""
        body = {"temperature": 0.8, "ignore_eos": True, **self.extra}
        options = {
            "--concurrency": self.concurrency,
            "--requests": self.requests,
            "--output-tokens": self.output_tokens,
            "--extra-body": json.dumps(body),
        }
        if self.warmup:
            options["--warmup"] = self.warmup
        if self.prompt_characters is not None:
            options["--prompt-characters"] = self.prompt_characters
        return [part for name, value in options.items() for part in (name, str(value))]


# Of the loads that tell CPU a token: about an answer's length, so that the cost of a request counts as it does there.
ANSWER_TOKENS = 256

LOADS = {
    "1 stream": Load(concurrency=1, requests=40, output_tokens=16, warmup=8),
    "64 streams": Load(concurrency=64, requests=128, output_tokens=ANSWER_TOKENS, warmup=64),
    "256 streams": Load(concurrency=256, requests=256, output_tokens=64, warmup=64),
    "logprobs, top 5": Load(
        concurrency=64,
        requests=128,
        output_tokens=ANSWER_TOKENS,
        extra={"logprobs": True, "top_logprobs": 5},
    ),
    "4 stop strings": Load(
        concurrency=64,
        requests=128,
        output_tokens=ANSWER_TOKENS,
        extra={"stop": ["\n\nUser:", "<|endofanswer|>", "### Instruction", "END OF TEXT"]},
    ),
    "n = 4": Load(concurrency=16, requests=32, output_tokens=ANSWER_TOKENS, extra={"n": 4}),
    "long prompt": Load(concurrency=1, requests=4, output_tokens=4, prompt_characters=PROMPT_CHARACTERS),
}

# Streams that run, and the long prompts that arrive meanwhile.
RUNNING = Load(concurrency=16, requests=16, output_tokens=1000)
ARRIVING = Load(concurrency=8, requests=8, output_tokens=1, prompt_characters=PROMPT_CHARACTERS)
ARRIVING_AFTER_SECONDS = 2.0

IDLE_SECONDS = 10.0
