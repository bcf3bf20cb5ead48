"""Structured outputs, compiled before vLLM's core sees them.

The core compiles a constraint itself, in its own process, where nothing can stop
it. So it is compiled here first, in a thread: what fails, takes long or allows no
token is refused. llguidance bounds the work of each later step.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import llguidance
import numpy as np
from vllm import SamplingParams
from vllm.config import StructuredOutputsConfig, VllmConfig
from vllm.exceptions import VLLMClientError
from vllm.sampling_params import StructuredOutputsParams
from vllm.tokenizers import TokenizerLike
from vllm.v1.structured_output.backend_guidance import GuidanceBackend, serialize_guidance_grammar
from vllm.v1.structured_output.request import get_structured_output_key

from services.chassis.errors import InvalidRequest, Overloaded
from services.engine.structured_output import (
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuredOutput,
)
from services.engine.vllm_adapter.process import first_line

BACKEND: Final = "guidance"
"""Of vLLM's backends the one whose work at each token is bounded: xgrammar 0.2.8 takes a second a character for the
regex ((a{0,100}){0,100}){0,100}, in the loop that serves all streams. A core has one backend for all requests, so
vLLM's choice by request ("auto") would let the first request decide how strictly later ones are held."""

# Time of a processor, not of the clock: a machine that is busy for others makes no good constraint a bad one.
_WORK_SECONDS = 0.3
_LOOK_SECONDS = 0.05
_WAIT_SECONDS = 5.0
_THREADS = 2
_ERROR_CHARS = 300
# Tokens tried out; limits show in the first ones.
_TRIED_TOKENS = 3
# JSON on one line, with a space after a separator or none: with free whitespace small models give little else.
_SEPARATORS = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}


class _WorkClock:
    """The processor time that a thread has spent since it began."""

    def __init__(self) -> None:
        self._clock: int | None = None
        self._begin = 0.0

    def begin(self) -> None:
        """Start; called by the thread itself."""
        self._begin = time.thread_time()
        self._clock = time.pthread_getcpuclockid(threading.get_ident())

    def seconds(self) -> float:
        """What it has spent, 0 before it began."""
        return 0.0 if self._clock is None else time.clock_gettime(self._clock) - self._begin


class ConstraintCompiler:
    """Makes vLLM's parameters of structured outputs.

    Args:
        config: of the engine.
        tokenizer: the model's, None if it has none.
    """

    def __init__(self, config: VllmConfig, tokenizer: TokenizerLike | None) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._ll_tokenizer: llguidance.LLTokenizer | None = None
        # Each slot is held until its thread is done, also with what nobody waits for any more: that bounds the work.
        self._threads = ThreadPoolExecutor(_THREADS, "constraints")
        self._slots = asyncio.Semaphore(_THREADS)

    def prepare(self) -> None:
        """Build what all constraints need; it takes up to seconds."""
        if self._tokenizer is not None and GuidanceBackend.is_tokenizer_supported(self._tokenizer):
            vocab_size = self._config.model_config.get_vocab_size()
            self._ll_tokenizer = GuidanceBackend._build_ll_tokenizer(self._tokenizer, vocab_size)

    def close(self) -> None:
        """Take no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def compile(self, output: StructuredOutput) -> StructuredOutputsParams:
        """Check a structured output and make vLLM's parameters of it.

        Raises:
            InvalidRequest: it cannot be compiled, or takes too much work.
            Overloaded: too many are being compiled, or the machine is too busy.
        """
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise Overloaded("too many structured outputs are being compiled; try again") from None
        loop = asyncio.get_running_loop()
        clock = _WorkClock()
        future = loop.run_in_executor(self._threads, self._compiled, output, clock)
        future.add_done_callback(self._free)
        give_up = loop.time() + _WAIT_SECONDS
        while not (await asyncio.wait([future], timeout=_LOOK_SECONDS))[0]:
            if clock.seconds() > _WORK_SECONDS:
                raise InvalidRequest(
                    "the structured output takes too much work to compile; simplify it", param="structured_output"
                )
            if loop.time() > give_up:
                raise Overloaded("structured outputs are compiled too slowly on this busy machine; try again")
        try:
            return future.result()
        except (VLLMClientError, ValueError, TypeError, RecursionError) as error:
            reason = first_line(error)[:_ERROR_CHARS]
            raise InvalidRequest(f"the structured output is refused: {reason}", param="structured_output") from error

    def _free(self, future: asyncio.Future[StructuredOutputsParams]) -> None:
        self._slots.release()
        if not future.cancelled():
            # Looked at, so that asyncio does not complain when nobody waits for it.
            future.exception()

    def _compiled(self, output: StructuredOutput, clock: _WorkClock) -> StructuredOutputsParams:
        clock.begin()
        model, config = self._config.model_config, self._config.structured_outputs_config
        # vLLM checks its parameters as part of a request's, and completes them meanwhile.
        params = SamplingParams(structured_outputs=_params(output, config))
        params.verify(model, self._config.speculative_config, config, self._tokenizer)
        checked = params.structured_outputs
        assert checked is not None
        if config.backend == BACKEND and self._ll_tokenizer is not None:
            self._try_out(checked, self._ll_tokenizer)
        return checked

    def _try_out(self, params: StructuredOutputsParams, tokenizer: llguidance.LLTokenizer) -> None:
        config = self._config.structured_outputs_config
        grammar = serialize_guidance_grammar(
            *get_structured_output_key(params), config.disable_any_whitespace, config.disable_additional_properties
        )
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        for _ in range(_TRIED_TOKENS):
            if matcher.is_stopped():
                break
            allowed = np.frombuffer(matcher.compute_logit_bias(), dtype=np.uint8).nonzero()[0]
            if not matcher.is_stopped():
                matcher.consume_token(int(allowed[0]))
        if matcher.is_error():
            raise ValueError(_without_state(matcher.get_error()))


def _without_state(error: str) -> str:
    line = error.strip().split("\n", 1)[0]
    return "it allows no output at all" if line == "NoExtensionBias" else line


def _params(output: StructuredOutput, config: StructuredOutputsConfig) -> StructuredOutputsParams:
    if isinstance(output, JsonSchema):
        return StructuredOutputsParams(json=_schema(output.schema_json, config))
    if isinstance(output, JsonObject):
        return StructuredOutputsParams(json=_schema('{"type": "object"}', config))
    if isinstance(output, Regex):
        return StructuredOutputsParams(regex=output.pattern)
    if isinstance(output, Grammar):
        return StructuredOutputsParams(grammar=output.grammar)
    if isinstance(output, Choice):
        return StructuredOutputsParams(choice=list(output.values))
    return StructuredOutputsParams(structural_tag=output.tag_json)


def _schema(schema_json: str, config: StructuredOutputsConfig) -> str:
    if config.backend != BACKEND:
        return schema_json
    # A oneOf is held to as an anyOf, as vLLM's other backends do; llguidance would refuse most.
    options = {"coerce_one_of": True, **({} if config.disable_any_whitespace else _SEPARATORS)}
    return json.dumps({**json.loads(schema_json), "x-guidance": options})
