"""Checks of a request against the model's limits, before the engine sees it.

vLLM's own checks live in its HTTP layer; a token id outside the vocabulary that
reaches its core kills it. Whoever calls, the check is here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from services.chassis.errors import InvalidRequest, Unsupported
from services.engine.port import Limits, Sampling
from services.engine.structured_output import check_structured_output

MAX_CHOICES = 128
MAX_TOKEN_ID_LIST = 1024


@dataclass(frozen=True, slots=True)
class GenerationSpec:
    """A request to generate, checked by `check_generation` before it is used."""

    request_id: str
    prompt_token_ids: list[int]
    sampling: Sampling
    n: int = 1
    priority: int = 0
    cache_salt: str | None = None
    deadline_seconds: float | None = None
    traceparent: str | None = None


def check_generation(spec: GenerationSpec, limits: Limits) -> None:
    """Check a request against the limits of its model.

    Raises:
        InvalidRequest: a value is out of range; `param` names the field.
        Unsupported: the engine's configuration does not allow what is asked for.
    """
    _check_prompt(spec.prompt_token_ids, limits)
    if not 1 <= spec.n <= MAX_CHOICES:
        raise InvalidRequest(f"n is {spec.n}; allowed are 1 to {MAX_CHOICES}", param="n")
    if spec.priority != 0 and not limits.supports_priority:
        raise Unsupported("this engine serves first come, first served; leave priority unset", param="priority")
    _check_numbers(spec.sampling, limits)
    _check_lengths(spec, limits)
    _check_token_lists(spec.sampling, limits)
    if spec.sampling.structured_output is not None:
        check_structured_output(spec.sampling.structured_output)


def _check_prompt(prompt_token_ids: list[int], limits: Limits) -> None:
    if not prompt_token_ids:
        raise InvalidRequest(
            "the prompt is empty; it needs at least one token", param="prompt_token_ids", reason="EMPTY_PROMPT"
        )
    if len(prompt_token_ids) >= limits.context_length:
        raise InvalidRequest(
            f"the prompt has {len(prompt_token_ids)} tokens, but the context of {limits.context_length} tokens must"
            " hold it and at least one more; shorten the prompt",
            param="prompt_token_ids",
            reason="CONTEXT_LENGTH_EXCEEDED",
        )
    _check_vocabulary("prompt_token_ids", prompt_token_ids, limits)


def _check_lengths(spec: GenerationSpec, limits: Limits) -> None:
    sampling = spec.sampling
    room = limits.context_length - len(spec.prompt_token_ids)
    if sampling.max_tokens is not None:
        if sampling.max_tokens < 1:
            raise InvalidRequest("max_tokens is 0; at least 1 is allowed", param="max_tokens")
        if sampling.max_tokens > room:
            raise InvalidRequest(
                f"max_tokens is {sampling.max_tokens}, but the prompt's {len(spec.prompt_token_ids)} tokens leave"
                f" {room} of the context of {limits.context_length}; lower max_tokens or shorten the prompt",
                param="max_tokens",
                reason="CONTEXT_LENGTH_EXCEEDED",
            )
    most = sampling.max_tokens if sampling.max_tokens is not None else room
    if sampling.min_tokens > most:
        raise InvalidRequest(
            f"min_tokens is {sampling.min_tokens}, above the most tokens possible, {most}", param="min_tokens"
        )


def _check_numbers(sampling: Sampling, limits: Limits) -> None:
    _check_range("temperature", sampling.temperature, 0.0, 2.0)
    _check_range("top_p", sampling.top_p, 0.0, 1.0, above_low=True)
    _check_range("min_p", sampling.min_p, 0.0, 1.0)
    _check_range("presence_penalty", sampling.presence_penalty, -2.0, 2.0)
    _check_range("frequency_penalty", sampling.frequency_penalty, -2.0, 2.0)
    _check_range("repetition_penalty", sampling.repetition_penalty, 0.0, 2.0, above_low=True)
    if sampling.top_k is not None and sampling.top_k < -1:
        raise InvalidRequest(f"top_k is {sampling.top_k}; allowed are 0 or -1 (all) and above", param="top_k")
    for name, value in (("logprobs", sampling.logprobs), ("prompt_logprobs", sampling.prompt_logprobs)):
        if value is not None and value > limits.max_logprobs:
            raise InvalidRequest(f"{name} is {value}; allowed are 0 to {limits.max_logprobs}", param=name)


def _check_token_lists(sampling: Sampling, limits: Limits) -> None:
    if len(sampling.stop_token_ids) > MAX_TOKEN_ID_LIST:
        raise InvalidRequest(
            f"stop_token_ids has {len(sampling.stop_token_ids)} ids; at most {MAX_TOKEN_ID_LIST} are allowed",
            param="stop_token_ids",
        )
    if len(sampling.logit_bias) > MAX_TOKEN_ID_LIST:
        raise InvalidRequest(
            f"logit_bias has {len(sampling.logit_bias)} entries; at most {MAX_TOKEN_ID_LIST} are allowed",
            param="logit_bias",
        )
    if len(sampling.allowed_token_ids) > limits.vocab_size:
        raise InvalidRequest(
            f"allowed_token_ids has {len(sampling.allowed_token_ids)} ids; the vocabulary has {limits.vocab_size}",
            param="allowed_token_ids",
        )
    _check_vocabulary("stop_token_ids", sampling.stop_token_ids, limits)
    _check_vocabulary("allowed_token_ids", sampling.allowed_token_ids, limits)
    _check_vocabulary("logit_bias", sampling.logit_bias, limits)
    for token_id, bias in sampling.logit_bias.items():
        _check_range(f"logit_bias[{token_id}]", bias, -100.0, 100.0)


def _check_vocabulary(name: str, token_ids: Iterable[int], limits: Limits) -> None:
    worst = max(token_ids, default=0)
    if worst >= limits.vocab_size:
        raise InvalidRequest(
            f"{name} holds {worst}; token ids of this model are 0 to {limits.vocab_size - 1}",
            param=name,
            reason="TOKEN_ID_OUT_OF_VOCABULARY",
        )


def _check_range(name: str, value: float | None, low: float, high: float, *, above_low: bool = False) -> None:
    if value is None:
        return
    # A comparison with NaN is false, so NaN is refused here as well.
    in_range = (low < value <= high) if above_low else (low <= value <= high)
    if not in_range or not math.isfinite(value):
        bounds = f"above {low:g} and at most {high:g}" if above_low else f"{low:g} to {high:g}"
        raise InvalidRequest(f"{name} is {value:g}; allowed are values {bounds}", param=name)
