"""What a server answered, in a form that two servers' answers can be compared in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import httpx

from tests.e2e.differential.requests import Case

AT_ONCE = 16
# The last digits depend on what else the engine computes in the same step.
_LOGPROB_TOLERANCE = 2e-3


@dataclass
class Choice:
    """One choice; `token_ids` stay empty where the server does not tell them."""

    text: str = ""
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    logprobs: Any = None
    token_ids: list[int] = field(default_factory=list)
    reasoning: str = ""
    # Name and arguments of each; the arguments as a value where they are JSON, since white space in it means nothing.
    tool_calls: list[tuple[str, Any]] = field(default_factory=list)


@dataclass
class Answer:
    """One answer. An error has no choices, and its message in `error`."""

    status: int
    choices: dict[int, Choice] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""

    @property
    def served(self) -> bool:
        """Whether it is an answer and not an error."""
        return self.status == 200 and not self.error


def ask_all(url: str, cases: Sequence[Case]) -> dict[str, Answer]:
    """Ask a server all cases, some at once.

    Returns:
        The answers by the cases' names.
    """
    with httpx.Client(base_url=url, timeout=120) as client, ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda case: _ask(client, case.path, case.body), cases)
        return dict(zip([case.name for case in cases], answers, strict=True))


def differences(ours: Answer, peers: Answer) -> dict[str, tuple[Any, Any]]:
    """Return what differs by its name: ours and the peer's. Where both refuse, the class of the status counts."""
    if not ours.served and not peers.served:
        classes = ours.status // 100, peers.status // 100
        return {} if classes[0] == classes[1] else {"status": (ours.status, peers.status)}
    if ours.served != peers.served:
        return {"status": (f"{ours.status} {ours.error}", f"{peers.status} {peers.error}")}
    found: dict[str, tuple[Any, Any]] = {}
    for name in ("prompt_tokens", "completion_tokens"):
        if getattr(ours, name) != getattr(peers, name):
            found[name] = getattr(ours, name), getattr(peers, name)
    if ours.choices.keys() != peers.choices.keys():
        found["choices"] = sorted(ours.choices), sorted(peers.choices)
        return found
    for index, choice in ours.choices.items():
        peer = asdict(peers.choices[index])
        for name, value in asdict(choice).items():
            if (difference := first_difference(value, peer[name])) is not None:
                found[name] = difference
    return found


def _ask(client: httpx.Client, path: str, body: dict[str, Any]) -> Answer:
    if not body.get("stream"):
        response = client.post(path, json=body)
        if response.status_code != 200:
            return Answer(response.status_code, error=_message(response.text))
        return _whole(response.json())
    with client.stream("POST", path, json=body) as response:
        if response.status_code != 200:
            return Answer(response.status_code, error=_message(response.read().decode()))
        return _streamed([line[6:] for line in response.iter_lines() if line.startswith("data: ")])


def _whole(document: dict[str, Any]) -> Answer:
    answer = Answer(200)
    for each in document["choices"]:
        choice = answer.choices.setdefault(each["index"], Choice())
        choice.text = (each["message"]["content"] or "") if "message" in each else each["text"]
        _extend(choice, each.get("message", {}))
        choice.tool_calls = [(name, _value(arguments)) for name, arguments in choice.tool_calls]
        _end(choice, each)
        choice.token_ids = list(each.get("token_ids") or [])
        choice.logprobs = each.get("logprobs")
        if choice.logprobs:
            # OpenAI has it beside the content, always null here; vLLM leaves it out.
            choice.logprobs.pop("refusal", None)
    _count(answer, document["usage"])
    return answer


def _streamed(events: list[str]) -> Answer:
    answer = Answer(200)
    # vLLM says [DONE] after an error too.
    failed = next((event for event in events if event.startswith('{"error"')), None)
    if failed or events[-1] != "[DONE]":
        return Answer(200, error=_message(failed or events[-1]))
    for event in events[:-1]:
        chunk = json.loads(event)
        for each in chunk["choices"]:
            choice = answer.choices.setdefault(each["index"], Choice())
            choice.text += (each["delta"].get("content") or "") if "delta" in each else each["text"]
            _extend(choice, each.get("delta", {}))
            choice.token_ids += each.get("token_ids") or []
            if each["finish_reason"] is not None:
                _end(choice, each)
        if chunk.get("usage"):
            _count(answer, chunk["usage"])
    for choice in answer.choices.values():
        choice.tool_calls = [(name, _value(arguments)) for name, arguments in choice.tool_calls]
    return answer


def _extend(choice: Choice, told: dict[str, Any]) -> None:
    """Add what a message or a delta tells beside its content."""
    choice.reasoning += told.get("reasoning") or ""
    for position, call in enumerate(told.get("tool_calls") or []):
        index, function = call.get("index", position), call["function"]
        if index == len(choice.tool_calls):
            choice.tool_calls.append((function["name"], ""))
        name, arguments = choice.tool_calls[index]
        choice.tool_calls[index] = (name, arguments + (function.get("arguments") or ""))


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _end(choice: Choice, told: dict[str, Any]) -> None:
    choice.finish_reason = told["finish_reason"]
    choice.stop_reason = told.get("stop_reason")


def _count(answer: Answer, usage: dict[str, Any]) -> None:
    answer.prompt_tokens, answer.completion_tokens = usage["prompt_tokens"], usage["completion_tokens"]


def _message(body: str) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:200] or "empty"


def first_difference(ours: Any, peers: Any) -> tuple[Any, Any] | None:
    """Return the innermost first difference of two JSON values; numbers with fractions may differ a little."""
    if isinstance(ours, float) and isinstance(peers, float):
        return None if math.isclose(ours, peers, abs_tol=_LOGPROB_TOLERANCE) else (ours, peers)
    if isinstance(ours, list) and isinstance(peers, list) and len(ours) == len(peers):
        return _first(zip(ours, peers, strict=True))
    if isinstance(ours, dict) and isinstance(peers, dict) and ours.keys() == peers.keys():
        return _first((value, peers[name]) for name, value in ours.items())
    return None if ours == peers else (ours, peers)


def _first(pairs: Iterable[tuple[Any, Any]]) -> tuple[Any, Any] | None:
    return next((found for pair in pairs if (found := first_difference(*pair)) is not None), None)
