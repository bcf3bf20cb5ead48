"""Live text generations: from a prompt to the engine's streams, and their text back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, Protocol

import structlog

from services.chassis.drain import Drain
from services.chassis.errors import DeadlineExceeded, InternalError, InvalidRequest, ServiceError
from services.tokenizer.choice import Choice
from services.tokenizer.classifiers.classifier_stage import judged_by
from services.tokenizer.classifiers.judging import Judging
from services.tokenizer.events import EngineSink, Finish, Parsed, PromptDetail, TextSink
from services.tokenizer.logprobs import Logprobs, with_bytes
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.output_stage import NewStage, staged
from services.tokenizer.parsed_choice import ParsedChoice
from services.tokenizer.prompt_detail import prompt_detail
from services.tokenizer.prompt_encoding import PromptEncoding
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_spec import EngineRequest, TextSpec

log = structlog.get_logger(__name__)

MAX_CHOICES = 128

StartStream = Callable[[EngineRequest, EngineSink], Callable[[], None]]
"""Begins a stream at the engine and returns what cancels it; raises Unavailable without an engine."""


class Filters(Protocol):
    """The output filters that are in force."""

    def stage(self, model: str, caller: str, request_id: str, withheld: Callable[[int], None]) -> NewStage | None:
        """What makes a choice's stage; None where no rule applies. `withheld` is told of tokens that no delta tells."""


class TextGenerator(Generic[EngineRequest]):
    """Starts generations.

    Args:
        find_model: the model of a name; raises what a caller may see.
        start_stream: begins a stream at the engine.
        admission: places for choices.
        metrics: of the tier.
        filters: of what is generated; None: there are none.
        judging: asks the classifier of what is generated; None: there is none.
    """

    def __init__(
        self,
        find_model: Callable[[str], TextModel],
        start_stream: StartStream[EngineRequest],
        admission: Drain,
        metrics: TokenizerMetrics,
        filters: Filters | None = None,
        judging: Judging | None = None,
    ) -> None:
        self.find_model = find_model
        self.start_stream = start_stream
        self.admission = admission
        self.metrics = metrics
        self.filters = filters
        self.judging = judging

    def admit(self, spec: TextSpec[EngineRequest], sink: TextSink) -> TextGeneration[EngineRequest]:
        """Take places for a generation; `run_up` of what is returned begins it.

        Raises:
            InvalidRequest: n is out of range, or a token id not in the vocabulary.
            NotFound, Loading, Unavailable: the model cannot be asked.
            Overloaded, Draining: there is no place.
        """
        if not 1 <= spec.n <= MAX_CHOICES:
            raise InvalidRequest(f"n is {spec.n}; allowed are 1 to {MAX_CHOICES}", param="n")
        model = self.find_model(spec.model)
        for name, token_ids in spec.token_ids.items():
            model.check_token_ids(token_ids, name, name)
        self.admission.enter(spec.n)
        return TextGeneration(self, model, spec, sink)


class TextGeneration(Generic[EngineRequest]):
    """One live generation; each of its choices is a stream of its own at the engine."""

    __slots__ = (
        "_arrival",
        "_choices",
        "_completion_tokens",
        "_deadline",
        "_encoding",
        "_generator",
        "_model",
        "_places",
        "_prompt_token_ids",
        "_sink",
        "_spec",
        "_started",
        "over",
    )

    def __init__(
        self,
        generator: TextGenerator[EngineRequest],
        model: TextModel,
        spec: TextSpec[EngineRequest],
        sink: TextSink,
    ) -> None:
        self._generator = generator
        self._model = model
        self._spec = spec
        self._sink = sink
        self._arrival = time.monotonic()
        self._places = spec.n
        self._choices: list[Choice] = []
        self._prompt_token_ids: list[int] = []
        self._encoding = PromptEncoding(
            spec.request_id,
            model,
            spec.prompt,
            generator.metrics,
            self._seconds_left,
            self._ask_for_summary if spec.summary_request is not None else None,
            self._filter_stages,
        )
        self._started = False
        self._completion_tokens = 0
        self._deadline: asyncio.TimerHandle | None = None
        self.over = False
        if spec.deadline_seconds is not None:
            self._deadline = asyncio.get_running_loop().call_later(spec.deadline_seconds, self._expire)

    async def run_up(self) -> None:
        """Encode the prompt and begin its streams. A failure becomes the sink's `failed`."""
        if self.over:
            return
        try:
            prompt_token_ids = await self._encoding.token_ids(self._spec.max_tokens, self._spec.prompt_logprobs)
            if not self.over:
                self._begin(prompt_token_ids)
        except ServiceError as error:
            self._fail(error)
        except TimeoutError:
            self._expire()
        except Exception:
            log.exception("generation failed to start", request_id=self._spec.request_id)
            self._fail(InternalError())

    def cancel(self) -> None:
        """End it without a further event. One that is over is left alone."""
        if not self.over:
            self._generator.metrics.cancelled.inc()
            self._end("cancelled")

    def choice_started(self, prompt_tokens: int, cached_tokens: int, prompt_logprobs: Logprobs | None) -> None:
        """Pass on the first start of a choice."""
        if not self._started and not self.over:
            self._started = True
            spec = self._spec
            prompt: PromptDetail | None = None
            if spec.echo is not None or prompt_logprobs is not None:
                prompt = prompt_detail(
                    self._model.tokenizer, self._prompt_token_ids, spec.skip_special_tokens, spec.echo, prompt_logprobs
                )
            if self._encoding.report is not None:
                prompt = replace(prompt or PromptDetail(None, None), context=self._encoding.report)
            self._sink.started(self._model.name, prompt_tokens, cached_tokens, prompt)

    def choice_delta(
        self, index: int, token_ids: list[int], text: str, logprobs: Logprobs | None, parsed: Parsed | None = None
    ) -> None:
        """Pass on text."""
        if not self.over:
            self._completion_tokens += len(token_ids)
            self._generator.metrics.tokens.value += len(token_ids)
            if logprobs is None:
                self._sink.delta(index, token_ids, text, None, parsed)
            else:
                told = with_bytes(self._model.tokenizer.table, token_ids, logprobs)
                self._sink.delta(index, token_ids, text, told, parsed)

    def choice_finished(self, index: int, finish: Finish) -> None:
        """Pass on the end of a choice."""
        if self.over:
            return
        self._places -= 1
        self._generator.admission.leave()
        if all(choice.ended for choice in self._choices):
            self._end(finish.reason.value)
        self._sink.finished(index, finish)

    def choice_failed(self, error: ServiceError) -> None:
        """End the whole with the error of one choice."""
        self._fail(error)

    def _begin(self, prompt_token_ids: list[int]) -> None:
        spec, tokenizer = self._spec, self._model.tokenizer
        new_parser = spec.chat_output.parsers(tokenizer, prompt_token_ids) if spec.chat_output is not None else None
        log.debug("generation started", request_id=spec.request_id, prompt_tokens=len(prompt_token_ids), n=spec.n)
        seconds_left = self._seconds_left()
        self._prompt_token_ids = prompt_token_ids
        if spec.complete is not None:
            spec.complete(tokenizer)
        new_stages = self._new_stages()
        for index in range(spec.n):
            stages = staged(index, self, new_stages) if new_stages else ()
            reader = stages[0] if stages else self
            matcher = spec.stops.matcher(spec.include_stop, spec.min_tokens) if spec.stops is not None else None
            if spec.chat_output is None or new_parser is None:
                decoder = tokenizer.decoder(prompt_token_ids, spec.skip_special_tokens)
                choice = Choice(index, reader, decoder, matcher, spec.include_stop)
            else:
                decoder = tokenizer.parsing_decoder(prompt_token_ids, spec.skip_special_tokens)
                one_call = not spec.chat_output.tools.parallel
                choice = ParsedChoice(index, reader, decoder, matcher, spec.include_stop, new_parser(), one_call)
            for stage in stages:
                stage.choice = choice
            self._choices.append(choice)
            request = spec.engine_request(prompt_token_ids, index, seconds_left)
            choice.cancel_stream = self._generator.start_stream(request, choice)

    def _ask_for_summary(self, token_ids: list[int], most_tokens: int, sink: EngineSink) -> Callable[[], None]:
        assert self._spec.summary_request is not None
        request = self._spec.summary_request(token_ids, most_tokens, self._seconds_left())
        return self._generator.start_stream(request, sink)

    def _new_stages(self) -> Sequence[NewStage]:
        return (*self._filter_stages(), *self._spec.stages)

    def _filter_stages(self) -> Sequence[NewStage]:
        spec, generator = self._spec, self._generator
        stages: list[NewStage] = []
        if generator.filters is not None:
            stage = generator.filters.stage(self._model.name, spec.caller, spec.request_id, self._count)
            stages += [] if stage is None else [stage]
        if generator.judging is not None:
            stages.append(judged_by(generator.judging, spec.request_id))
        return stages

    def _count(self, tokens: int) -> None:
        # Of tokens that no delta tells.
        self._completion_tokens += tokens
        self._generator.metrics.tokens.value += tokens

    def _seconds_left(self) -> float | None:
        if self._spec.deadline_seconds is None:
            return None
        return max(0.0, self._arrival + self._spec.deadline_seconds - time.monotonic())

    def _expire(self) -> None:
        self._fail(DeadlineExceeded("the request's time is over; allow more or ask for less"))

    def _fail(self, error: ServiceError) -> None:
        if not self.over:
            self._end(error.reason)
            self._sink.failed(error)

    def _end(self, outcome: str) -> None:
        self.over = True
        if self._deadline is not None:
            self._deadline.cancel()
        self._encoding.cancel()
        for choice in self._choices:
            if not choice.ended:
                choice.cancel_stream()
        if self._places:
            self._generator.admission.leave(self._places)
        log.info(
            "generation ended",
            request_id=self._spec.request_id,
            outcome=outcome,
            prompt_tokens=len(self._prompt_token_ids),
            n=self._spec.n,
            completion_tokens=self._completion_tokens,
            seconds=round(time.monotonic() - self._arrival, 3),
        )
