"""A valid completion request, from JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from services.chassis.errors import InvalidRequest
from services.frontend.fields import UINT32, Fields
from services.frontend.model_name import parse_model
from services.frontend.params import (
    Delivery,
    Output,
    Sampling,
    check_labels,
    parse_delivery,
    parse_output,
    parse_sampling,
)
from services.frontend.prompts import Prompt, parse_prompts
from services.frontend.refusals import refuse, refuse_in_completion

MAX_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request of /v1/completions whose every field is valid by itself.

    `prompts` are text or token ids, all of one kind; `add_special_tokens` and `suffix` count for text only. With `echo`
    each choice begins with its prompt, and with `prompt_only` it ends there too: of the one token that
    `sampling.max_tokens` then asks for nothing is told.
    """

    model: str
    prompts: tuple[Prompt, ...]
    sampling: Sampling
    output: Output
    delivery: Delivery
    add_special_tokens: bool | None = None
    suffix: str | None = None
    echo: bool = False
    prompt_only: bool = False


def parse_completion_request(body: dict[str, Any]) -> CompletionRequest:
    """Make a request from the body's object.

    Raises:
        InvalidRequest: a field is missing, of a wrong type or out of range.
        Unsupported: this version cannot serve it.
    """
    fields = Fields(body)
    model = parse_model(fields)
    refuse(fields)
    refuse_in_completion(fields)
    check_labels(fields)
    logprobs = fields.integer("logprobs", 0, MAX_LOGPROBS)
    echo = fields.boolean("echo") or False
    max_tokens = _parse_max_tokens(fields, echo)
    prompt_only = max_tokens == 0
    sampling = parse_sampling(fields, 1 if prompt_only else max_tokens)
    output = parse_output(fields)
    prompts = parse_prompts(fields, output.choices)
    add_special_tokens = fields.boolean("add_special_tokens")
    if add_special_tokens and not isinstance(prompts[0], str):
        raise InvalidRequest(
            "add_special_tokens is for a prompt of text, but the prompt is token ids; leave it out",
            param="add_special_tokens",
        )
    return CompletionRequest(
        model=model,
        prompts=prompts,
        sampling=replace(sampling, logprobs=logprobs, prompt_logprobs=logprobs if echo else None),
        output=output,
        delivery=parse_delivery(fields),
        add_special_tokens=add_special_tokens,
        suffix=_parse_suffix(fields, prompts, echo),
        echo=echo,
        prompt_only=prompt_only,
    )


def _parse_max_tokens(fields: Fields, echo: bool) -> int | None:
    max_tokens = fields.integer("max_tokens", 0, UINT32)
    if max_tokens == 0 and not echo:
        raise InvalidRequest(
            "max_tokens must be at least 1; 0 is allowed with echo: true only, for the prompt alone", param="max_tokens"
        )
    return max_tokens


def _parse_suffix(fields: Fields, prompts: tuple[Prompt, ...], echo: bool) -> str | None:
    suffix = fields.string("suffix")
    if suffix is None:
        return None
    if not isinstance(prompts[0], str):
        raise InvalidRequest(
            "suffix is for a prompt of text, but the prompt is token ids; leave it out", param="suffix"
        )
    if echo:
        raise InvalidRequest("suffix and echo exclude each other; set one of them", param="suffix")
    return suffix
