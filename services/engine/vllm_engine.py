"""vLLM behind the engine port. The only module that knows vLLM.

It speaks to `EngineCoreClient`, an internal interface of vLLM that gives one
batch of outputs a step for all requests; the version is pinned and the contract
suite holds what is assumed here. Requests are built by vLLM's `InputProcessor`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import structlog
from vllm import SamplingParams
from vllm.config import VllmConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.exceptions import VLLMClientError
from vllm.inputs.engine import tokens_input
from vllm.platforms import current_platform
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, EngineCoreRequest
from vllm.v1.engine import FinishReason as VllmFinishReason
from vllm.v1.engine.core_client import AsyncMPClient, EngineCoreClient
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.engine.input_processor import InputProcessor
from vllm.v1.executor import Executor
from vllm.v1.outputs import LogprobsLists, LogprobsTensors

from services.chassis.errors import InvalidRequest
from services.engine.port import (
    Engine,
    EngineDead,
    EngineRequest,
    Finish,
    FinishReason,
    Limits,
    Load,
    Logprobs,
    Output,
    Prefilled,
    Sampling,
    Step,
)

log = structlog.get_logger(__name__)

# What a CPU engine needs beyond vLLM's own defaults: bfloat16 gives wrong text
# there, and compiling gains nothing. The budget of tokens bounds a step to about
# half a second, so that a long prompt neither holds up streams nor outlives its caller.
_CPU_ARGUMENTS: Mapping[str, Any] = {
    "dtype": "float32",
    "enforce_eager": True,
    "enable_chunked_prefill": True,
    "max_num_batched_tokens": 512,
    "kv_cache_memory_bytes": 2 * 1024**3,
    "worker_cls": "services.engine.vllm_cpu_worker.SeededCPUWorker",
}
# Else the first request with log probabilities waits 15 s for a compiler.
_CPU_ENVIRONMENT = {"TORCH_COMPILE_DISABLE": "1"}

_SHUTDOWN_SECONDS = 5.0

_FINISH_REASONS = {
    VllmFinishReason.STOP: FinishReason.STOP,
    VllmFinishReason.REPETITION: FinishReason.STOP,
    VllmFinishReason.LENGTH: FinishReason.LENGTH,
}


class VllmLoader:
    """Loads a model with vLLM.

    Args:
        source: directory or hub id of the model.
        arguments: vLLM's engine arguments by their own names, over the defaults.
    """

    def __init__(self, source: str, arguments: Mapping[str, Any]) -> None:
        self._source = source
        self._arguments = arguments
        self._tokenizer_directory = Path(source)

    @property
    def tokenizer_directory(self) -> Path:
        """Where the tokenizer's files lie; for a hub id, in the hub's cache once loaded."""
        return self._tokenizer_directory

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[Engine, None]:
        """Load the model; leaving the block ends vLLM's processes.

        Raises:
            EngineDead: it cannot be loaded.
        """
        # vLLM blocks for the whole load.
        config, client = await asyncio.to_thread(self._start)
        processor = InputProcessor(config)
        try:
            try:
                tasks = await client.get_supported_tasks_async()
            except EngineDeadError:
                raise EngineDead(f"{self._source} cannot be loaded: vLLM's engine core died at once") from None
            yield VllmEngine(client, processor, tasks)
        finally:
            await asyncio.shield(asyncio.to_thread(client.shutdown, _SHUTDOWN_SECONDS))
            processor.renderer.shutdown()

    def _start(self) -> tuple[VllmConfig, AsyncMPClient]:
        arguments = dict(self._arguments)
        if current_platform.is_cpu():
            arguments = {**_CPU_ARGUMENTS, **arguments}
            os.environ.update(_CPU_ENVIRONMENT)
        try:
            config = AsyncEngineArgs(model=self._source, **arguments).create_engine_config()
            client = EngineCoreClient.make_async_mp_client(
                vllm_config=config, executor_class=Executor.get_class(config), log_stats=True
            )
        except Exception as error:
            log.exception("model failed to load", source=self._source)
            raise EngineDead(f"{self._source} cannot be loaded: {_first_line(error)}") from error
        self._tokenizer_directory = _directory_of(self._source)
        return config, client


class VllmEngine:
    """One loaded model; see `services.engine.port.Engine`."""

    def __init__(self, client: AsyncMPClient, processor: InputProcessor, tasks: tuple[Any, ...]) -> None:
        self._client = client
        self._processor = processor
        self._tasks = tasks
        model = processor.model_config
        self._defaults = model.get_diff_sampling_param()
        self._limits = Limits(
            context_length=model.max_model_len,
            vocab_size=model.get_vocab_size(),
            max_logprobs=model.max_logprobs if model.max_logprobs >= 0 else model.get_vocab_size(),
            supports_priority=processor.scheduler_config.policy == "priority",
        )
        # One queue for both keeps an abort behind its request: vLLM loses an
        # abort that overtakes the add.
        self._operations: asyncio.Queue[EngineCoreRequest | list[str]] = asyncio.Queue()
        # vLLM adds a model's further end tokens to each request's stop tokens
        # and reports them as such; only the request's own are told.
        self._stop_token_ids: dict[str, tuple[int, ...]] = {}

    @property
    def limits(self) -> Limits:
        """What requests may ask."""
        return self._limits

    def add(self, request: EngineRequest) -> None:
        """Queue a request.

        Raises:
            InvalidRequest: vLLM refuses it.
        """
        prompt = tokens_input(list(request.prompt_token_ids), cache_salt=request.cache_salt)
        try:
            core_request = self._processor.process_inputs(
                request.request_id,
                prompt,
                self._sampling_params(request.sampling),
                self._tasks,
                priority=request.priority,
                trace_headers={"traceparent": request.traceparent} if request.traceparent else None,
            )
        except (VLLMClientError, ValueError) as error:
            raise InvalidRequest(f"the engine refuses the request: {_first_line(error)}") from error
        if request.sampling.stop_token_ids:
            self._stop_token_ids[request.request_id] = request.sampling.stop_token_ids
        self._operations.put_nowait(core_request)

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests, after their `add`."""
        for request_id in request_ids:
            self._stop_token_ids.pop(request_id, None)
        self._operations.put_nowait(list(request_ids))

    async def run(self, on_step: Callable[[Step], None]) -> None:
        """Call `on_step` after each step until cancelled.

        Raises:
            EngineDead: vLLM's core or a worker of it died.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send())
                while True:
                    on_step(self._step(await self._client.get_output_async()))
        except* EngineDeadError:
            raise EngineDead("vLLM's engine core died") from None

    async def _send(self) -> None:
        while True:
            operation = await self._operations.get()
            if isinstance(operation, list):
                await self._client.abort_requests_async(operation)
            else:
                await self._client.add_request_async(operation)

    def _step(self, outputs: EngineCoreOutputs) -> Step:
        stats = outputs.scheduler_stats
        load = None
        if stats is not None:
            waiting = stats.num_waiting_reqs + stats.num_skipped_waiting_reqs
            load = Load(stats.num_running_reqs, waiting, stats.kv_cache_usage)
        return Step([_output(output, self._stop_token_ids) for output in outputs.outputs], load)

    def _sampling_params(self, sampling: Sampling) -> SamplingParams:
        defaults = self._defaults

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


def _output(output: EngineCoreOutput, stop_token_ids: dict[str, tuple[int, ...]]) -> Output:
    prefilled = finish = logprobs = None
    failed = False
    if output.prefill_stats is not None:
        prefilled = Prefilled(
            output.prefill_stats.num_cached_tokens, _prompt_logprobs(output.new_prompt_logprobs_tensors)
        )
    if output.new_logprobs is not None:
        logprobs = _logprobs(output.new_logprobs)
    if output.finish_reason is not None:
        reason = _FINISH_REASONS.get(output.finish_reason)
        own = stop_token_ids.pop(output.request_id, ())
        if reason is None:
            failed = True
        else:
            stop = output.stop_reason
            finish = Finish(reason, stop if isinstance(stop, int) and stop in own else None)
    return Output(output.request_id, output.new_token_ids, prefilled, logprobs, finish, failed)


def _logprobs(columns: LogprobsLists) -> Logprobs:
    # Column 0 is the chosen token, the others the most likely ones in order.
    return _columns(columns.logprob_token_ids, columns.logprobs, columns.sampled_token_ranks)


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


def _directory_of(source: str) -> Path:
    if os.path.isdir(source):
        return Path(source)
    # Loading has put the files into the hub's cache.
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(source, local_files_only=True))


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
