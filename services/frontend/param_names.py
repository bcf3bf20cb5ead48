"""Names of fields as the caller sent them, in the errors of the tiers behind."""

from __future__ import annotations

from services.chassis.errors import ServiceError
from services.frontend.chat_request import ChatRequest
from services.frontend.completion_request import CompletionRequest

# What the prompt is called in the text service's and the engine's requests.
_PROMPT = ("prompt", "prompt_token_ids")


def name_as_sent(error: ServiceError, request: ChatRequest | CompletionRequest) -> None:
    """Put the caller's own name of the field at fault into an error, where it differs from the tiers'."""
    if error.param in _PROMPT:
        error.param = "messages" if isinstance(request, ChatRequest) else "prompt"
    elif error.param == "prompt_logprobs":
        error.param = "logprobs"
    elif error.param == "structured_output":
        asked = request.sampling.structured_output
        # Without a constraint of the caller's own it is that of the tools which must be called.
        error.param = asked.param if asked is not None else "tools"
