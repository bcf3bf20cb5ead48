"""A model that vLLM runs, behind the engine port.

It speaks to `EngineCoreClient`, an internal interface of vLLM that gives one
batch of outputs a step for all requests. Requests are built by vLLM's
`InputProcessor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from vllm.exceptions import VLLMClientError
from vllm.inputs.engine import tokens_input
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.engine import EngineCoreOutputs, EngineCoreRequest
from vllm.v1.engine.core_client import AsyncMPClient
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.engine.input_processor import InputProcessor

from services.chassis.errors import InvalidRequest
from services.engine.port import (
    EngineDead,
    EngineRequest,
    Limits,
    Step,
)
from services.engine.structured_output import StructuredOutput
from services.engine.vllm_adapter.constraints import ConstraintCompiler
from services.engine.vllm_adapter.output_reader import OutputReader
from services.engine.vllm_adapter.outputs import NOTHING_ASKED, Asked, step_of
from services.engine.vllm_adapter.process import first_line
from services.engine.vllm_adapter.sampling import sampling_params

log = structlog.get_logger(__name__)


class VllmEngine:
    """One loaded model; see `services.engine.port.Engine`."""

    def __init__(
        self,
        client: AsyncMPClient,
        reader: OutputReader,
        processor: InputProcessor,
        constraints: ConstraintCompiler,
        tasks: tuple[Any, ...],
    ) -> None:
        self._client = client
        self._reader = reader
        self._constraints = constraints
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
        self._asked: dict[str, Asked] = {}

    @property
    def limits(self) -> Limits:
        """What requests may ask."""
        return self._limits

    async def compile(self, output: StructuredOutput) -> object:
        """Make a request's constraint.

        Raises:
            InvalidRequest: it cannot be compiled, or not in time.
            Overloaded: too many wait.
        """
        return await self._constraints.compile(output)

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
                sampling_params(request.sampling, self._defaults),
                self._tasks,
                priority=request.priority,
                trace_headers={"traceparent": request.traceparent} if request.traceparent else None,
            )
        except (VLLMClientError, ValueError) as error:
            raise InvalidRequest(f"the engine refuses the request: {first_line(error)}") from error
        if isinstance(request.constraint, StructuredOutputsParams) and core_request.sampling_params is not None:
            # Not given above, where vLLM would check it once more, which takes time.
            core_request.sampling_params.structured_outputs = request.constraint
        asked = Asked(request.sampling.stop_token_ids, request.sampling.logprobs or 0)
        if asked != NOTHING_ASKED:
            self._asked[request.request_id] = asked
        self._operations.put_nowait(core_request)

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests, after their `add`."""
        for request_id in request_ids:
            self._asked.pop(request_id, None)
        self._operations.put_nowait(list(request_ids))

    async def run(self, on_step: Callable[[Step], None]) -> None:
        """Call `on_step` after each step until cancelled.

        Raises:
            EngineDead: vLLM's core or a worker of it died.
        """

        def on_outputs(outputs: EngineCoreOutputs) -> None:
            step = step_of(outputs, self._asked)
            for output in step.outputs:
                if output.finish is not None or output.failed:
                    self._asked.pop(output.request_id, None)
            on_step(step)

        self._reader.hand_to(on_outputs)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send())
                await asyncio.wait([self._reader.failed])
                self._reader.failed.result()
        except* EngineDeadError:
            raise EngineDead("vLLM's engine core died") from None

    async def _send(self) -> None:
        while True:
            operation = await self._operations.get()
            if isinstance(operation, list):
                await self._client.abort_requests_async(operation)
            else:
                await self._client.add_request_async(operation)
