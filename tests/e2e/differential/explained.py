"""Where our answers differ from vLLM's on purpose, each with its reason. Any other difference fails the tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.differential.answers import Answer, first_difference
from tests.e2e.differential.bad_requests import BadRequest, Outcome
from tests.e2e.differential.explained_calls import EXPLAINED_CALLS, EXPLAINED_MODELS_CALLS
from tests.e2e.differential.explanation import Explanation
from tests.e2e.differential.requests import Case

REPLACEMENT = "\ufffd"
_SPACIOUS = re.compile(r"\s\s|\n|\t")


def _is_cut(ours: Answer, peers: Answer) -> bool:
    return all(
        choice.text in (peers.choices[index].text, peers.choices[index].text + REPLACEMENT)
        for index, choice in ours.choices.items()
    )


def _cut_character(_: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return names == {"text"} and _is_cut(ours, peers)


def _seed_minus_one(case: Case, _ours: Answer, _peers: Answer, _names: set[str]) -> bool:
    return case.body.get("seed") == -1


def _forged_turn(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    forged = any("<|im_end|>" in str(message["content"]) for message in case.body.get("messages", []))
    return forged and "prompt_tokens" in names and ours.prompt_tokens > peers.prompt_tokens


def _no_default_length(case: Case, ours: Answer, peers: Answer, _names: set[str]) -> bool:
    return (
        case.path.endswith("/v1/completions")
        and "max_tokens" not in case.body
        and peers.completion_tokens == 16
        and peers.choices[0].finish_reason == "length"
        and ours.choices[0].text.startswith(peers.choices[0].text)
    )


def _not_built(_case: Case, ours: Answer, peers: Answer, _names: set[str]) -> bool:
    refused = ("is not supported by this version", "in one request are not supported")
    return ours.status == 400 and any(words in ours.error for words in refused) and peers.served


def _parts_of_characters(_case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    if "logprobs" not in names or not names <= {"logprobs", "text"}:
        return False
    both = [
        (_tokens(choice.logprobs), _tokens(peers.choices[index].logprobs)) for index, choice in ours.choices.items()
    ]
    return _is_cut(ours, peers) and all(
        len(mine) == len(theirs)
        and all(
            first_difference(*pair) is None or REPLACEMENT in str(pair[0]) for pair in zip(mine, theirs, strict=True)
        )
        for mine, theirs in both
    )


def _tokens(logprobs: dict[str, Any]) -> list[Any]:
    """Return what is told of each token, in either shape."""
    columns = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    return logprobs.get("content") or [list(row) for row in zip(*(logprobs[name] for name in columns), strict=True)]


def _compact_json(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    constrained = "response_format" in case.body or "json" in case.body.get("structured_outputs", {})
    return (
        constrained
        and "status" not in names
        and all(
            not _SPACIOUS.search(choice.text) and _SPACIOUS.search(peers.choices[index].text) is not None
            for index, choice in ours.choices.items()
        )
    )


def _stop_in_reasoning(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return (
        "stop" in case.body
        and names == {"completion_tokens", "text", "reasoning"}
        and all(
            choice.reasoning.startswith(peers.choices[index].reasoning) and not peers.choices[index].text
            for index, choice in ours.choices.items()
        )
    )


def _reasoning_effort(case: Case, ours: Answer, peers: Answer, names: set[str]) -> bool:
    return (
        "reasoning_effort" in case.body
        and names == {"text", "reasoning"}
        and all(choice.text == peers.choices[index].reasoning for index, choice in ours.choices.items())
    )


def _echo_alone(case: Case, ours: Answer, _peers: Answer, _names: set[str]) -> bool:
    return case.body.get("echo") is True and case.body["max_tokens"] == 0 and ours.completion_tokens == 0


EXPLAINED_ANSWERS: Mapping[str, Explanation] = {
    "cut character": Explanation(
        "an answer that ends inside a character ends with U+FFFD, as one-shot decoding of its ids does;"
        " vLLM drops the bytes",
        _cut_character,
    ),
    "seed -1": Explanation("a seed like any other, repeatable; vLLM takes it for no seed at all", _seed_minus_one),
    "forged turn": Explanation(
        "a message cannot end its turn: control tokens in its text stay text; vLLM makes control tokens of them",
        _forged_turn,
    ),
    "length left out": Explanation(
        "a completion without max_tokens may use the rest of the context; vLLM ends it after 16 tokens",
        _no_default_length,
    ),
    "parts of characters": Explanation(
        "a token that is a part of a character is shown as U+FFFD among the log probabilities; vLLM shows nothing for"
        " it, or the whole character",
        _parts_of_characters,
    ),
    "echo alone": Explanation(
        "with echo and max_tokens 0 nothing is generated or counted; vLLM generates a token, counts it and hides it",
        _echo_alone,
    ),
    "compact JSON": Explanation(
        "JSON comes on one line, with a space after a separator at most; vLLM allows white space without end, and small"
        " models then give little else",
        _compact_json,
    ),
    "not built": Explanation("refused by name, as this version does not have it; vLLM serves it", _not_built),
    "stop in reasoning": Explanation(
        "a stop string ends the answer, not the reasoning before it; vLLM looks for it in both", _stop_in_reasoning
    ),
    "reasoning effort": Explanation(
        "reasoning is what the prompt or the model opens; vLLM's parser takes reasoning_effort for an opened one,"
        " whatever the template made of it",
        _reasoning_effort,
    ),
    **EXPLAINED_CALLS,
}


@dataclass(frozen=True)
class ExplainedOutcome:
    """What vLLM's server does of a wrong request where we do another thing, and why we do."""

    peer: Outcome
    reason: str


_SERVED = Outcome(200, False)
_BROKEN = Outcome(500, True)


def _refused_by(vllm: Outcome, reason: str, *names: str) -> dict[str, ExplainedOutcome]:
    return {name: ExplainedOutcome(vllm, reason) for name in names}


def _both(names: list[str]) -> list[str]:
    return [f"{kind} {name}" for kind in ("chat", "completion") for name in names]


_UNTRUSTED = "it reaches into the scheduler, the cache or the engine, so callers may not set it"
_NO_ERROR_OBJECT = "every error has OpenAI's error object; vLLM's server answers without one"

EXPLAINED_OUTCOMES: Mapping[str, ExplainedOutcome] = {
    **_refused_by(_SERVED, "a string is not a number; vLLM turns it into one", *_both(['max_tokens "10"'])),
    **_refused_by(_SERVED, "a string is not a boolean; vLLM turns it into one", *_both(['stream "yes"'])),
    **_refused_by(_SERVED, "a string is not a boolean; vLLM turns it into one", 'completion echo "yes"'),
    **_refused_by(_SERVED, "true is not a token id; vLLM takes it for 1", "completion prompt [true]"),
    **_refused_by(_SERVED, "its range ends at 2 here; vLLM has no upper bound", *_both(["repetition_penalty 2.5"])),
    **_refused_by(_SERVED, "OpenAI's range is -100 to 100", *_both(['logit_bias {"5": 101}'])),
    **_refused_by(_SERVED, "what is not built is refused; vLLM ignores it", *_both(["best_of 1000000"])),
    **_refused_by(_SERVED, _UNTRUSTED, *_both(["priority 7", 'cache_salt "salt"'])),
    **_refused_by(_SERVED, _UNTRUSTED, *_both(['kv_transfer_params {"do_remote_decode": true}'])),
    **_refused_by(_SERVED, _UNTRUSTED, 'chat prompt_embeds "AAAA"'),
    **_refused_by(_BROKEN, "the caller's fault, not the server's", *_both(['stop "\\ud800"'])),
    **_refused_by(
        _SERVED,
        "only the roles that OpenAI documents; vLLM puts any role into the prompt",
        'chat messages [{"role": "root", "content": "Hi"}]',
    ),
    **_refused_by(
        _SERVED,
        "content may be missing in an assistant's message only; vLLM takes it for empty",
        'chat messages [{"role": "user"}]',
        'chat messages [{"role": "user", "content": []}]',
    ),
    **_refused_by(
        _SERVED,
        "a tool's result needs a call before it, as with OpenAI; vLLM does not look",
        'chat messages [{"role": "tool", "content": "4", "tool_… (60)',
    ),
    **_refused_by(
        Outcome(400, True),
        "served: it says by itself that no generation prompt is wanted; vLLM wants add_generation_prompt: false too",
        "chat continue_final_message true",
    ),
    **_refused_by(Outcome(400, True), "served: no tools are none; vLLM wants the list left out", "chat tools []"),
    **_refused_by(_SERVED, "OpenAI asks for a model; vLLM takes the only one", "missing model", 'model ""'),
    **_refused_by(_SERVED, "which of both counts is anybody's guess; vLLM takes the last", "body with a duplicate key"),
    **_refused_by(Outcome(400, False), _NO_ERROR_OBJECT, "body nested 10,000 deep", "body with invalid UTF-8"),
    **_refused_by(Outcome(405, False), _NO_ERROR_OBJECT, "wrong method"),
    **_refused_by(Outcome(404, False), _NO_ERROR_OBJECT, "unknown path"),
}

# The only wrong requests that we serve.
SERVED_BY_US = ("chat continue_final_message true", "chat tools []")


def explanation_of(case: Case, ours: Answer, peers: Answer, names: set[str]) -> str | None:
    """Return the name of the explanation that covers a difference, if there is one."""
    explanations = {**EXPLAINED_ANSWERS, **EXPLAINED_MODELS_CALLS}
    return next((name for name, each in explanations.items() if each.covers(case, ours, peers, names)), None)


def outcome_differs(ours: Outcome, peers: Outcome) -> bool:
    """Whether two answers to a wrong request differ: in the class of their status or in having an error object."""
    return (ours.status // 100, ours.has_error_object) != (peers.status // 100, peers.has_error_object)


def unexplained_outcome(request: BadRequest, ours: Outcome, peers: Outcome) -> str | None:
    """Return what is wrong with two answers to a wrong request, None if nothing is."""
    expected = EXPLAINED_OUTCOMES.get(request.name)
    if expected is None:
        return f"{request.name}: ours {ours}, vLLM's {peers}" if outcome_differs(ours, peers) else None
    if not outcome_differs(ours, peers):
        return f"{request.name}: explained, but both answer {ours}"
    return f"{request.name}: vLLM answers {peers}, explained is {expected.peer}" if peers != expected.peer else None
