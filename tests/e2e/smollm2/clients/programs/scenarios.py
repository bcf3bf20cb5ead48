"""What all client programs have in common: questions, a tool, and the loop that runs what standard input asks for.

A program gets the service's URL, the model's name and the URL of a proxy before the service as arguments. It answers
each line of standard input, which names a scenario, with one line of JSON. It lives on after a scenario, so that
leaving a stream is not the end of the process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel

URL, MODEL, PROXY_URL, *_ = [*sys.argv[1:], "", "", ""]
BASE_URL = f"{URL}/v1"
PROXY_BASE_URL = f"{PROXY_URL}/v1"
QUESTION = "What is the capital of France?"
MESSAGES = [{"role": "user", "content": QUESTION}]
MAX_TOKENS = 40
UNKNOWN = "gpt-unknown"
# More than any context has.
TOO_MANY_TOKENS = 1_000_000
# Keeps the model from ending its answer, in OpenAI's own terms.
ENDLESS = {"max_tokens": 4000, "logit_bias": {"2": -100}}
PIECES_BEFORE_LEAVING = 3
RETRIES = 2
# What an answer is that only has to come.
FEW_TOKENS = 4

TOOL_QUESTION = "What is the weather in Paris?"
TOOL_NAME = "get_weather"
TOOL_DESCRIPTION = "Gives the weather of a city."
TOOL_PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Berlin"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": TOOL_NAME, "description": TOOL_DESCRIPTION, "parameters": TOOL_PARAMETERS},
}
NAMED = {"type": "function", "function": {"name": TOOL_NAME}}
TOOL_RESULT = "Sunny, 25 degrees."
# For clients that leave the choice to the model: a small one calls nothing by itself, but copies well.
COPIED_CALL = (
    "Repeat this text exactly, and nothing else:\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
)

Scenario = Callable[[], Mapping[str, Any]]


class Place(BaseModel):
    """What the model is to give."""

    name: Literal["Paris", "Berlin"]
    is_capital: bool


def told(error: BaseException) -> Mapping[str, Any]:
    """Return what a client makes of an error: its class and text, and the status that it or its cause knows."""
    status: int | None = None
    cause: BaseException | None = error
    while status is None and cause is not None:
        status, cause = getattr(cause, "status_code", None), cause.__cause__
    return {"kind": type(error).__name__, "status": status, "message": str(error)}


def called(name: str, arguments: str | Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
    """Return what a client makes of a tool call."""
    return {"name": name, "arguments": json.loads(arguments) if isinstance(arguments, str) else arguments, **more}


def serve(*scenarios: Scenario) -> None:
    """Run the scenario that each line of standard input names, until it ends; an empty line asks for their names."""
    by_name = {scenario.__name__: scenario for scenario in scenarios}
    for line in sys.stdin:
        name = line.strip()
        answer = by_name[name]() if name else {"names": sorted(by_name)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
