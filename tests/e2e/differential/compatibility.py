"""The page that tells, parameter by parameter, what OpenAI, vLLM and we do: made from what the servers answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.e2e.differential.bad_requests import BadRequest
from tests.e2e.differential.explained import (
    EXPLAINED_ANSWERS,
    EXPLAINED_OUTCOMES,
    outcome_differs,
)
from tests.e2e.differential.explained_calls import EXPLAINED_MODELS_CALLS
from tests.e2e.differential.record import Difference, Record
from tests.e2e.differential.requests import CHAT, COMPLETIONS, Case
from tests.e2e.smollm2.clients.capabilities import CAPABILITIES, CLIENTS, NOT_OFFERED
from tests.e2e.smollm2.clients.installed import title

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"

# What OpenAI's reference has: https://platform.openai.com/docs/api-reference. The rest is vLLM's.
_OPENAI_BOTH = (
    *("model", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "max_tokens", "n", "prompt", "seed"),
    *("stop", "stream", "stream_options", "temperature", "top_p", "user"),
)
_OPENAI = {
    CHAT: (
        *_OPENAI_BOTH,
        *("messages", "max_completion_tokens", "parallel_tool_calls", "reasoning_effort", "response_format"),
        *("tool_choice", "tools", "top_logprobs"),
    ),
    COMPLETIONS: (*_OPENAI_BOTH, "best_of", "echo", "prompt (list)"),
}

_HEAD = """# Compatibility

Made by `make compatibility` from the answers of vLLM 0.32's own server and of this service to the same requests on the
same model; a test fails when it is not current. "Equal" means text, token ids, log probabilities, finish reason, stop
reason, reasoning, tool calls and usage. Both show a model the same prompt: where its chat template knows no tools,
vLLM's server is given one that tells them as this service does.
"""
_PARAMETERS = """
## Parameters

| endpoint | parameter | OpenAI | vLLM | Stream-Omni |
| --- | --- | --- | --- | --- |
"""
_CLIENTS = """
## Clients

Each of these clients is run against the service in the tests, and does all that it offers of this:

"""
_WRONG = """
## Wrong requests

{total} wrong requests were sent to both. {same} are answered alike: the same class of status, with OpenAI's error
object. The others:

| request | vLLM | Stream-Omni | why |
| --- | --- | --- | --- |
"""


def page(
    cases: Sequence[Case], wrong: Sequence[BadRequest], differing: Sequence[Difference], ours: Record, peers: Record
) -> str:
    """Return the page's text; it depends on what was answered alone."""
    return _HEAD + _parameters(cases, differing, ours, peers) + _wrong_requests(wrong, ours, peers) + _clients()


def _parameters(cases: Sequence[Case], differing: Sequence[Difference], ours: Record, peers: Record) -> str:
    explanations = {each.case.name: each.explanation or "unexplained" for each in differing}
    kinds: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        kinds.setdefault((case.path, case.parameter), []).append(case)
    rows = []
    for (path, parameter), about in sorted(kinds.items()):
        served = sum(peers.answers[case.name].served for case in about)
        found = Counter(explanations[case.name] for case in about if case.name in explanations)
        told = [f"{len(about) - found.total()} of {len(about)} equal"]
        told += [f"{count}: {name}" for name, count in sorted(found.items())]
        openai = "documented" if parameter in _OPENAI[path] else "–"
        openai = "" if parameter == "mixtures" else openai
        rows.append(f"| {path} | {_cell(parameter)} | {openai} | {served} of {len(about)} served | {'; '.join(told)} |")
    explained = {**EXPLAINED_ANSWERS, **EXPLAINED_MODELS_CALLS}
    reasons = [f"- **{name}**: {each.reason}." for name, each in explained.items()]
    return _PARAMETERS + "\n".join(rows) + "\n\nWhere answers differ:\n\n" + "\n".join(reasons) + "\n"


def _wrong_requests(wrong: Sequence[BadRequest], ours: Record, peers: Record) -> str:
    rows = []
    for request in wrong:
        our, peer = ours.outcomes[request.name], peers.outcomes[request.name]
        if outcome_differs(our, peer):
            explained = EXPLAINED_OUTCOMES.get(request.name)
            reason = explained.reason if explained else "unexplained"
            rows.append(f"| {_cell(request.name)} | {peer} | {our} | {reason} |")
    return _WRONG.format(total=len(wrong), same=len(wrong) - len(rows)) + "\n".join(rows) + "\n"


def _clients() -> str:
    rows = [["", *(title(client) for client in CLIENTS)], ["---"] * (len(CLIENTS) + 1)]
    for capability, told in CAPABILITIES.items():
        rows.append([told, *("–" if (client, capability) in NOT_OFFERED else "yes" for client in CLIENTS)])
    reasons = [
        f"- {title(client)}, {CAPABILITIES[capability]}: {reason}."
        for (client, capability), reason in NOT_OFFERED.items()
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return _CLIENTS + table + "\n\nNot offered:\n\n" + "\n".join(reasons) + "\n"


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"
