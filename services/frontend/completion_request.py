"""A valid completion request, from JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.fields import UINT32, Fields, checked_token_ids
from services.frontend.model_name import parse_model
from services.frontend.params import Delivery, Output, Sampling, parse_delivery, parse_output, parse_sampling
from services.frontend.refusals import refuse

MAX_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request of /v1/completions whose every field is valid by itself.

    `prompt` is text or token ids; `add_special_tokens` counts for text only.
    """

    model: str
    prompt: str | tuple[int, ...]
    sampling: Sampling
    output: Output
    delivery: Delivery
    add_special_tokens: bool | None = None


def parse_completion_request(body: dict[str, Any]) -> CompletionRequest:
    """Make a request from the body's object.

    Raises:
        InvalidRequest: a field is missing, of a wrong type or out of range.
        Unsupported: this version cannot serve it.
    """
    fields = Fields(body)
    model = parse_model(fields)
    refuse(fields)
    if fields.integer("logprobs", 0, MAX_LOGPROBS) is not None:
        raise Unsupported("logprobs is not supported by this version; leave it out", param="logprobs")
    prompt = _parse_prompt(fields)
    add_special_tokens = fields.boolean("add_special_tokens")
    if add_special_tokens and not isinstance(prompt, str):
        raise InvalidRequest(
            "add_special_tokens is for a prompt of text, but the prompt is token ids; leave it out",
            param="add_special_tokens",
        )
    return CompletionRequest(
        model=model,
        prompt=prompt,
        sampling=parse_sampling(fields, fields.integer("max_tokens", 1, UINT32)),
        output=parse_output(fields),
        delivery=parse_delivery(fields),
        add_special_tokens=add_special_tokens,
    )


def _parse_prompt(fields: Fields) -> str | tuple[int, ...]:
    prompt = fields.value("prompt")
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, list) or not prompt:
        raise InvalidRequest("prompt must be a string or a list of token ids, and not an empty list", param="prompt")
    if isinstance(prompt[0], (str, list)):
        if len(prompt) > 1:
            raise Unsupported(
                f"a list of prompts is not supported by this version, but {len(prompt)} are given; send one a request",
                param="prompt",
            )
        prompt = prompt[0]
        if isinstance(prompt, str):
            return prompt
        if not prompt:
            raise InvalidRequest("prompt must hold at least one token id", param="prompt")
    return checked_token_ids(prompt, "prompt")
