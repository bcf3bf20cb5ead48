"""What the clients offer: the table that the tests go by."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.smollm2.clients.installed import JAVASCRIPT_CLIENTS, PYTHON_CLIENTS

CLIENTS = tuple(
    f"{language}-{name}"
    for language, names in (("python", PYTHON_CLIENTS), ("javascript", JAVASCRIPT_CLIENTS))
    for name in names
)

# The names of the scenarios in the clients' programs.
CAPABILITIES: Mapping[str, str] = {
    "chat": "an answer in one piece",
    "stream": "an answer in pieces",
    "leave": "leaving a stream",
    "structured": "an answer of a JSON schema",
    "error": "its error of a model that there is not",
    "invalid": "its error of a wrong request",
    "call": "a tool call in one piece",
    "call_stream": "a tool call in pieces",
    "round_trip": "a tool's result given back",
    "retry": "trying again after a fault",
    "refused": "not trying again after a refusal",
}

NOT_OFFERED: Mapping[tuple[str, str], str] = {
    ("python-instructor", "chat"): "it gives objects only",
    ("python-instructor", "stream"): "it gives objects only",
    ("python-instructor", "leave"): "it hands out an object in pieces when the stream has ended",
    ("python-instructor", "round_trip"): "its tools are the shapes of answers, and nothing is given back to the model",
}

_OPENAI = {"error": "NotFoundError", "invalid": "BadRequestError"}
# The classes of the errors, by the client and the scenario.
ERROR_KINDS: Mapping[str, Mapping[str, str]] = {
    "python-instructor": {"error": "InstructorRetryException", "invalid": "InstructorRetryException"},
    "python-langchain": {"error": "OpenAIModelNotFoundError", "invalid": "OpenAIInvalidRequestError"},
    "python-litellm": _OPENAI,
    "python-llama_index": _OPENAI,
    "python-llm": _OPENAI,
    "python-openai": _OPENAI,
    "javascript-openai": _OPENAI,
    "javascript-vercel_ai": {"error": "AI_APICallError", "invalid": "AI_APICallError"},
}


def offering(capability: str) -> list[str]:
    """The clients that offer a capability."""
    return [client for client in CLIENTS if (client, capability) not in NOT_OFFERED]
