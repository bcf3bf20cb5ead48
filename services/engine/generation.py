"""Live generations of one model: from the engine's steps to their readers.

A step is handled in one synchronous pass: no task, no queue, no await a token.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from services.chassis.drain import Drain
from services.chassis.errors import DeadlineExceeded, InternalError, InvalidRequest, ServiceError
from services.engine.metrics import ModelMetrics
from services.engine.port import Engine, EngineRequest, Finish, Load, Logprobs, Output, Prefilled, Step
from services.engine.structured_output import StructuredOutput
from services.engine.validation import GenerationSpec, check_generation

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one choice."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


class Sink(Protocol):
    """Where a generation's events go. Calls are synchronous and must not raise."""

    def started(self, prompt_tokens: int, prefilled: Prefilled) -> None:
        """The prompt is computed. First, once."""

    def delta(self, index: int, token_ids: list[int], logprobs: Logprobs | None) -> None:
        """The next tokens of a choice."""

    def finished(self, index: int, finish: Finish, usage: Usage) -> None:
        """A choice ended. Once for each choice."""

    def failed(self, error: ServiceError) -> None:
        """The generation is over with an error. Nothing follows."""


@dataclass(slots=True, eq=False)
class Choice:
    """One choice of a generation. What a token needs is all here: each further object is memory that has gone cold
    since the last step."""

    sink: Sink
    index: int
    generation: Generation
    request_id: str
    completion_tokens: int = 0
    last_token_time: float = 0.0
    ended: bool = False


@dataclass(slots=True, eq=False)
class Generation:
    """One live generation."""

    owner: Generations
    spec: GenerationSpec
    sink: Sink
    arrival_time: float
    choices: list[Choice] = field(default_factory=list)
    cached_tokens: int | None = None
    deadline: asyncio.TimerHandle | None = None
    compiling: asyncio.Task[None] | None = None
    over: bool = False

    def cancel(self) -> None:
        """End it without a further event. One that is over is left alone."""
        self.owner.cancel(self)


class Generations:
    """The live generations of one loaded model.

    Args:
        engine: the model.
        admission: places for choices, shared by all models of the process.
        metrics: the model's metrics.
        on_load: is told of the engine's load when it changes.
        group: compiles structured outputs; it ends with the model.
    """

    def __init__(
        self,
        engine: Engine,
        admission: Drain,
        metrics: ModelMetrics,
        on_load: Callable[[Load], None],
        group: asyncio.TaskGroup,
    ) -> None:
        self._engine = engine
        self._admission = admission
        self._metrics = metrics
        self._on_load = on_load
        self._group = group
        self._numbers = itertools.count()
        self._choices: dict[str, Choice] = {}

    def start(self, spec: GenerationSpec, sink: Sink) -> Generation:
        """Begin a generation; its events go to `sink`.

        Raises:
            InvalidRequest, Unsupported: the request does not fit the model.
            Overloaded, Draining: there is no place for it.
        """
        check_generation(spec, self._engine.limits)
        if spec.n > self._admission.limit:
            raise InvalidRequest(
                f"n is {spec.n}; this engine takes at most {self._admission.limit} choices at once", param="n"
            )
        self._admission.enter(spec.n)
        generation = Generation(self, spec, sink, time.monotonic())
        # Callers' ids need not be unique; the engine's must be.
        number = next(self._numbers)
        for index in range(spec.n):
            choice = Choice(sink, index, generation, f"{number}-{index}")
            generation.choices.append(choice)
            self._choices[choice.request_id] = choice
        try:
            if spec.sampling.structured_output is None:
                self._add(generation)
            else:
                # It takes time; the generation can be cancelled and can fail meanwhile, as afterwards.
                compiling = self._compile(generation, spec.sampling.structured_output)
                generation.compiling = self._group.create_task(compiling)
        except BaseException:
            self._end(generation)
            raise
        if spec.deadline_seconds is not None:
            generation.deadline = asyncio.get_running_loop().call_later(spec.deadline_seconds, self._expire, generation)
        log.debug(
            "generation started",
            request_id=spec.request_id,
            prompt_tokens=len(spec.prompt_token_ids),
            n=spec.n,
        )
        return generation

    def cancel(self, generation: Generation) -> None:
        """End one generation, as its `cancel` does."""
        if not generation.over:
            self._metrics.cancelled.inc()
            self._log_end(generation, "cancelled")
            self._end(generation)

    def fail_all(self, error: ServiceError) -> None:
        """End all generations with an error."""
        for generation in {id(choice.generation): choice.generation for choice in self._choices.values()}.values():
            self._fail(generation, error)

    def on_step(self, step: Step) -> None:
        """Hand one step's outputs to their generations."""
        now = time.monotonic()
        find, observe = self._choices.get, self._metrics.inter_token.observe
        tokens = 0
        for output in step.outputs:
            choice = find(output.request_id)
            if choice is None:
                # Output under way when its generation was cancelled is dropped here.
                continue
            if output.prefilled is not None or output.finish is not None or output.failed:
                tokens += self._on_output(choice.generation, choice, output, now)
                continue
            # Nearly all of them: more tokens, and nothing else.
            token_ids = output.token_ids
            if not token_ids:
                continue
            tokens += len(token_ids)
            observe(now - choice.last_token_time)
            choice.completion_tokens += len(token_ids)
            choice.last_token_time = now
            choice.sink.delta(choice.index, token_ids, output.logprobs)
        self._metrics.step(tokens, step.load)
        if step.load is not None:
            self._on_load(step.load)

    def _add(self, generation: Generation, constraint: object | None = None) -> None:
        for choice in generation.choices:
            self._engine.add(_engine_request(generation.spec, choice, constraint))

    async def _compile(self, generation: Generation, output: StructuredOutput) -> None:
        try:
            constraint = await self._engine.compile(output)
            if not generation.over:
                self._add(generation, constraint)
        except ServiceError as error:
            self._fail(generation, error)
        except Exception:
            log.exception("generation failed to start", request_id=generation.spec.request_id)
            self._fail(generation, InternalError())

    def _on_output(self, generation: Generation, choice: Choice, output: Output, now: float) -> int:
        """Hand on a choice's first or last output. Returns: its number of tokens, as far as they were handed on."""
        if output.failed:
            constrained = generation.spec.sampling.structured_output is not None
            self._fail(generation, _unmet_constraint() if constrained else InternalError())
            return 0
        if output.prefilled is not None and generation.cached_tokens is None:
            generation.cached_tokens = output.prefilled.cached_tokens
            self._metrics.prefilled(len(generation.spec.prompt_token_ids), output.prefilled.cached_tokens)
            generation.sink.started(len(generation.spec.prompt_token_ids), output.prefilled)
        token_ids = output.token_ids
        count = 0
        # The sink may have cancelled its generation during a call.
        if token_ids and not generation.over:
            count = len(token_ids)
            if choice.completion_tokens:
                self._metrics.inter_token.observe(now - choice.last_token_time)
            else:
                self._metrics.first_token.observe(now - generation.arrival_time)
            choice.completion_tokens += count
            choice.last_token_time = now
            generation.sink.delta(choice.index, token_ids, output.logprobs)
        if output.finish is not None and not generation.over:
            self._finish(generation, choice, output.finish, now)
        return count

    def _finish(self, generation: Generation, choice: Choice, finish: Finish, now: float) -> None:
        choice.ended = True
        del self._choices[choice.request_id]
        self._admission.leave()
        usage = Usage(len(generation.spec.prompt_token_ids), choice.completion_tokens, generation.cached_tokens or 0)
        self._metrics.finished(finish.reason.value, now - generation.arrival_time)
        if all(other.ended for other in generation.choices):
            self._log_end(generation, finish.reason.value)
            self._end(generation)
        generation.sink.finished(choice.index, finish, usage)

    def _expire(self, generation: Generation) -> None:
        self._fail(generation, DeadlineExceeded("the request's time is over; allow more or ask for less"))

    def _fail(self, generation: Generation, error: ServiceError) -> None:
        if generation.over:
            return
        self._log_end(generation, error.reason)
        self._end(generation)
        generation.sink.failed(error)

    def _end(self, generation: Generation) -> None:
        generation.over = True
        if generation.deadline is not None:
            generation.deadline.cancel()
        if generation.compiling is not None:
            generation.compiling.cancel()
        live = [choice.request_id for choice in generation.choices if not choice.ended]
        for request_id in live:
            del self._choices[request_id]
        if live:
            self._admission.leave(len(live))
            self._engine.abort(live)

    def _log_end(self, generation: Generation, outcome: str) -> None:
        log.info(
            "generation ended",
            request_id=generation.spec.request_id,
            outcome=outcome,
            prompt_tokens=len(generation.spec.prompt_token_ids),
            n=generation.spec.n,
            completion_tokens=sum(choice.completion_tokens for choice in generation.choices),
            seconds=round(time.monotonic() - generation.arrival_time, 3),
        )


def _unmet_constraint() -> InvalidRequest:
    return InvalidRequest(
        "the structured output cannot be met any further: it grew too complex, or other parameters leave it no token;"
        " simplify it, or leave those out",
        param="structured_output",
        reason="STRUCTURED_OUTPUT_FAILED",
    )


def _engine_request(spec: GenerationSpec, choice: Choice, constraint: object | None) -> EngineRequest:
    return EngineRequest(
        request_id=choice.request_id,
        prompt_token_ids=spec.prompt_token_ids,
        sampling=spec.sampling.for_choice(choice.index),
        priority=spec.priority,
        cache_salt=spec.cache_salt,
        traceparent=spec.traceparent,
        constraint=constraint,
    )
