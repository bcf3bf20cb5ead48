"""Where our tool calls differ from vLLM's on purpose, each with its reason.

Those of `EXPLAINED_CALLS` are seen with every model, those of `EXPLAINED_MODELS_CALLS` with a trained one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.e2e.differential.answers import Answer, Choice
from tests.e2e.differential.explanation import Explanation
from tests.e2e.differential.requests import Case


def _choice_pairs(ours: Answer, peers: Answer) -> Iterator[tuple[Choice, Choice]]:
    for index, choice in ours.choices.items():
        yield choice, peers.choices[index]


def _is_enforced(case: Case) -> bool:
    return case.body.get("tool_choice") not in (None, "auto", "none")


def _named_function(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    named = isinstance(case.body.get("tool_choice"), dict)
    return (
        named
        and names <= {"finish_reason", "completion_tokens"}
        and all(
            (mine.finish_reason, theirs.finish_reason) == ("tool_calls", "stop")
            for mine, theirs in _choice_pairs(ours, peers)
        )
    )


def _cut_off_call(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return (
        _is_enforced(case)
        and names <= {"text", "tool_calls"}
        and all(_is_cut_off(*pair) for pair in _choice_pairs(ours, peers))
    )


def _compact_calls(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return (
        _is_enforced(case)
        and names <= {"completion_tokens", "finish_reason", "tool_calls", "text"}
        and all(
            _is_cut_off(mine, theirs) or _is_shorter_call(mine, theirs, sampled=bool(case.body["temperature"]))
            for mine, theirs in _choice_pairs(ours, peers)
        )
    )


def _is_cut_off(mine: Choice, theirs: Choice) -> bool:
    return mine.finish_reason == theirs.finish_reason == "length" and not theirs.text


def _is_shorter_call(mine: Choice, theirs: Choice, *, sampled: bool) -> bool:
    # White space takes draws of the seed, so that sampled calls are others after it.
    same = theirs.finish_reason == "tool_calls" and (sampled or mine.tool_calls == theirs.tool_calls)
    return mine.finish_reason == "tool_calls" and (same or theirs.finish_reason == "length")


def _one_call(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return (
        case.body.get("parallel_tool_calls") is False
        and names == {"completion_tokens"}
        and ours.completion_tokens < peers.completion_tokens
    )


def _half_call(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return (
        bool(case.body.get("stream"))
        and names == {"text", "tool_calls"}
        and all(
            mine.finish_reason == "length" and not mine.tool_calls and theirs.tool_calls[-1][1] == ""
            for mine, theirs in _choice_pairs(ours, peers)
        )
    )


def _arguments_that_are_no_json(_: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return "tool_calls" in names and all(
        any(_is_text(arguments) for _, arguments in mine.tool_calls)
        and (not theirs.tool_calls or any(_is_text(arguments) for _, arguments in theirs.tool_calls))
        for mine, theirs in _choice_pairs(ours, peers)
    )


def _is_text(arguments: Any) -> bool:
    """Whether they did not read as JSON."""
    return isinstance(arguments, str)


EXPLAINED_CALLS: Mapping[str, Explanation] = {
    "cut off call": Explanation(
        "what came of an enforced call that is cut off is shown; vLLM shows nothing of it before its name is whole",
        _cut_off_call,
    ),
    "compact calls": Explanation(
        "the JSON of enforced calls has no white space but a space after a separator; vLLM's has any, and small models"
        " then come to no end",
        _compact_calls,
    ),
}

EXPLAINED_MODELS_CALLS: Mapping[str, Explanation] = {
    "named function": Explanation(
        "an answer that calls a tool ends with tool_calls; vLLM ends it with stop where the function is named",
        _named_function,
    ),
    "one call": Explanation(
        "with parallel_tool_calls false the answer ends with its first call; vLLM generates and counts further ones and"
        " hides them",
        _one_call,
    ),
    "half a call": Explanation(
        "what is cut off before it is a call stays text, streamed and whole alike; vLLM streams a call without"
        " arguments",
        _half_call,
    ),
    "arguments that are no JSON": Explanation(
        "a call whose arguments are no JSON is given as the model wrote it, as OpenAI does, streamed and whole alike;"
        " vLLM gives text when it is whole, and a brace too many when it is streamed",
        _arguments_that_are_no_json,
    ),
}
