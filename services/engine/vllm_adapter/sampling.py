"""The port's sampling as vLLM's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vllm import SamplingParams
from vllm.sampling_params import RequestOutputKind

from services.engine.port import Sampling


def sampling_params(sampling: Sampling, defaults: Mapping[str, Any]) -> SamplingParams:
    """Make vLLM's parameters of one request.

    Args:
        defaults: the model's own, by vLLM's names, for what the request leaves unset.
    """

    def given(name: str, neutral: float) -> Any:
        value = getattr(sampling, name)
        return value if value is not None else defaults.get(name, neutral)

    return SamplingParams(
        temperature=given("temperature", 1.0),
        top_p=given("top_p", 1.0),
        top_k=given("top_k", 0),
        min_p=given("min_p", 0.0),
        presence_penalty=given("presence_penalty", 0.0),
        frequency_penalty=given("frequency_penalty", 0.0),
        repetition_penalty=given("repetition_penalty", 1.0),
        # vLLM takes -1 for "no seed"; this is the same seed modulo 2^64.
        seed=2**64 - 1 if sampling.seed == -1 else sampling.seed,
        max_tokens=sampling.max_tokens,
        min_tokens=sampling.min_tokens,
        ignore_eos=sampling.ignore_eos,
        stop_token_ids=list(sampling.stop_token_ids),
        logit_bias=dict(sampling.logit_bias) or None,
        allowed_token_ids=list(sampling.allowed_token_ids) or None,
        logprobs=sampling.logprobs,
        prompt_logprobs=sampling.prompt_logprobs,
        detokenize=False,
        output_kind=RequestOutputKind.DELTA,
        # Made for this request alone, so vLLM need not copy it deeply.
        skip_clone=True,
    )
