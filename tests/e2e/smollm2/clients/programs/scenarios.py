"""What all client programs have in common: questions, and the loop that runs what standard input asks for.

A program gets the service's URL and the model's name as arguments. It answers each line of standard input, which names
a scenario, with one line of JSON. It lives on after a scenario, so that leaving a stream is not the end of the process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

URL, MODEL, *_ = [*sys.argv[1:], "", ""]
BASE_URL = f"{URL}/v1"
QUESTION = "What is the capital of France?"
MESSAGES = [{"role": "user", "content": QUESTION}]
MAX_TOKENS = 40
UNKNOWN = "gpt-unknown"
# Keeps the model from ending its answer, in OpenAI's own terms.
ENDLESS = {"max_tokens": 4000, "logit_bias": {"2": -100}}
PIECES_BEFORE_LEAVING = 3

Scenario = Callable[[], Mapping[str, Any]]


def told(error: BaseException) -> Mapping[str, Any]:
    """Return what a client makes of an error: its class and text, and the status that it or its cause knows."""
    status: int | None = None
    cause: BaseException | None = error
    while status is None and cause is not None:
        status, cause = getattr(cause, "status_code", None), cause.__cause__
    return {"kind": type(error).__name__, "status": status, "message": str(error)}


def serve(scenarios: Mapping[str, Scenario]) -> None:
    """Run the scenario that each line of standard input names, until it ends."""
    for line in sys.stdin:
        answer = scenarios[line.strip()]()
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
