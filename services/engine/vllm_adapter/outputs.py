"""vLLM's outputs of a step as the port's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs
from vllm.v1.engine import FinishReason as VllmFinishReason
from vllm.v1.outputs import LogprobsLists, LogprobsTensors

from services.engine.port import Finish, FinishReason, Load, Logprobs, Output, Prefilled, Step

_FINISH_REASONS = {
    VllmFinishReason.STOP: FinishReason.STOP,
    VllmFinishReason.REPETITION: FinishReason.STOP,
    VllmFinishReason.LENGTH: FinishReason.LENGTH,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asked for, where vLLM tells more.

    It adds a model's further end tokens to a request's stop tokens and reports them as
    such too, and gives each request of a step as many alternatives as any of them wants.
    """

    stop_token_ids: tuple[int, ...]
    logprobs: int


NOTHING_ASKED = Asked((), 0)


def step_of(outputs: EngineCoreOutputs, asked: Mapping[str, Asked]) -> Step:
    """What one step gave all requests, no more than each asked for.

    Args:
        asked: by the ids of the requests; those that asked for nothing may be missing.
    """
    stats = outputs.scheduler_stats
    load = None
    if stats is not None:
        waiting = stats.num_waiting_reqs + stats.num_skipped_waiting_reqs
        load = Load(stats.num_running_reqs, waiting, stats.kv_cache_usage)
    return Step([_output(output, asked) for output in outputs.outputs], load)


def _output(output: EngineCoreOutput, all_asked: Mapping[str, Asked]) -> Output:
    if output.finish_reason is None and output.new_logprobs is None and output.prefill_stats is None:
        # Nearly all of them.
        return Output(output.request_id, output.new_token_ids)
    asked = all_asked.get(output.request_id, NOTHING_ASKED)
    prefilled = finish = logprobs = None
    failed = False
    if output.prefill_stats is not None:
        prefilled = Prefilled(
            output.prefill_stats.num_cached_tokens, _prompt_logprobs(output.new_prompt_logprobs_tensors)
        )
    if output.new_logprobs is not None:
        logprobs = _logprobs(output.new_logprobs, asked.logprobs)
    if output.finish_reason is not None:
        reason = _FINISH_REASONS.get(output.finish_reason)
        if reason is None:
            failed = True
        else:
            stop = output.stop_reason
            finish = Finish(reason, stop if isinstance(stop, int) and stop in asked.stop_token_ids else None)
    return Output(output.request_id, output.new_token_ids, prefilled, logprobs, finish, failed)


def _logprobs(columns: LogprobsLists, count: int) -> Logprobs:
    ranks = columns.sampled_token_ranks.tolist()
    if len(ranks) == 1:
        # One token, as nearly always. Each call of numpy takes as long as all that Python does here.
        token_ids, logprobs = columns.logprob_token_ids[0].tolist(), columns.logprobs[0].tolist()
        top_token_ids = token_ids[1 : count + 1]
        return Logprobs(logprobs[:1], ranks, len(top_token_ids), top_token_ids, logprobs[1 : count + 1])
    # Column 0 is the chosen token, the others the most likely ones in order.
    wanted = slice(0, count + 1)
    return _columns(columns.logprob_token_ids[:, wanted], columns.logprobs[:, wanted], columns.sampled_token_ranks)


def _prompt_logprobs(tensors: LogprobsTensors | None) -> Logprobs | None:
    if tensors is None:
        return None
    return _columns(tensors.logprob_token_ids.numpy(), tensors.logprobs.numpy(), tensors.selected_token_ranks.numpy())


def _columns(token_ids: np.ndarray, logprobs: np.ndarray, ranks: np.ndarray) -> Logprobs:
    return Logprobs(
        logprobs=logprobs[:, 0].tolist(),
        ranks=ranks.tolist(),
        top_count=token_ids.shape[1] - 1,
        top_token_ids=token_ids[:, 1:].ravel().tolist(),
        top_logprobs=logprobs[:, 1:].ravel().tolist(),
    )
