"""Live text generations: from a prompt to the engine's streams, and their text back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from services.chassis.drain import Drain
from services.chassis.errors import DeadlineExceeded, InternalError, InvalidRequest, ServiceError
from services.tokenizer.choice import Choice
from services.tokenizer.events import EngineSink, Finish, Parsed, PromptDetail, TextSink
from services.tokenizer.logprobs import Logprobs, with_bytes
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.parsed_choice import ParsedChoice
from services.tokenizer.prompt import ChatOutput, Prompt
from services.tokenizer.prompt_detail import Echo, check_prompt_logprobs, prompt_detail
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_tokenizer import TextTokenizer

log = structlog.get_logger(__name__)

MAX_CHOICES = 128
# Above this size, encoding takes longer than a thread's hand-over costs.
_LARGE_PROMPT = 8 * 1024

EngineRequest = TypeVar("EngineRequest")
"""The engine's own request message, which this module only hands on."""


StartStream = Callable[[EngineRequest, EngineSink], Callable[[], None]]
"""Begins a stream at the engine and returns what cancels it; raises Unavailable without an engine."""


@dataclass(frozen=True, slots=True)
class TextSpec(Generic[EngineRequest]):
    """A request to generate, read from its message."""

    request_id: str
    model: str
    prompt: Prompt
    n: int
    stops: StopStrings | None
    include_stop: bool
    skip_special_tokens: bool
    deadline_seconds: float | None
    engine_request: Callable[[list[int], int, float | None], EngineRequest]
    """Makes the engine's request of prompt ids, index of the choice and seconds left."""
    echo: Echo | None = None
    """Gives the prompt's text to be told at the start; None tells none."""
    prompt_logprobs: int | None = None
    """Number of alternatives told of each prompt token; None tells no log probabilities of the prompt."""
    complete: Callable[[TextTokenizer], None] | None = None
    """Completes what `engine_request` makes by what only the model's vocabulary tells. Called once, before it."""
    chat_output: ChatOutput | None = None
    """Of a chat: what its answer may hold beside content."""
    min_tokens: int = 0
    """Tokens within which no stop string ends a choice."""
    token_ids: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Ids that it names beside those of the prompt, by the field that holds them."""


class TextGenerator(Generic[EngineRequest]):
    """Starts generations.

    Args:
        find_model: the model of a name; raises what a caller may see.
        start_stream: begins a stream at the engine.
        admission: places for choices.
        metrics: of the tier.
    """

    def __init__(
        self,
        find_model: Callable[[str], TextModel],
        start_stream: StartStream[EngineRequest],
        admission: Drain,
        metrics: TokenizerMetrics,
    ) -> None:
        self.find_model = find_model
        self.start_stream = start_stream
        self.admission = admission
        self.metrics = metrics

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
            prompt_token_ids = await self._encode()
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

    async def _encode(self) -> list[int]:
        prompt, tokenizer = self._spec.prompt, self._model.tokenizer
        begin = time.monotonic()
        # The ids of megabytes of text are millions, and making that list holds up everything else here.
        self._check_length(prompt.least_tokens(tokenizer), "at least ")
        if prompt.size > _LARGE_PROMPT:
            # The thread goes on after the deadline, but its caller hears of it at once.
            async with asyncio.timeout(self._seconds_left()):
                prompt_token_ids = await asyncio.to_thread(prompt.token_ids, tokenizer)
        else:
            prompt_token_ids = prompt.token_ids(tokenizer)
        self._generator.metrics.encoded(len(prompt_token_ids), time.monotonic() - begin)
        self._check_length(len(prompt_token_ids))
        self._model.check_token_ids(prompt_token_ids, "the prompt", "prompt")
        check_prompt_logprobs(len(prompt_token_ids), self._spec.prompt_logprobs)
        return prompt_token_ids

    def _check_length(self, prompt_tokens: int, vaguely: str = "") -> None:
        # The engine checks this too, but a message for each choice should not carry such a prompt there.
        context_length = self._model.context_length
        if context_length is not None and prompt_tokens >= context_length:
            raise InvalidRequest(
                f"the prompt has {vaguely}{prompt_tokens} tokens, but the context of {context_length} tokens must"
                " hold it and at least one more; shorten the prompt",
                param="prompt",
                reason="CONTEXT_LENGTH_EXCEEDED",
            )

    def _begin(self, prompt_token_ids: list[int]) -> None:
        spec, tokenizer = self._spec, self._model.tokenizer
        new_parser = spec.chat_output.parsers(tokenizer, prompt_token_ids) if spec.chat_output is not None else None
        log.debug("generation started", request_id=spec.request_id, prompt_tokens=len(prompt_token_ids), n=spec.n)
        seconds_left = self._seconds_left()
        self._prompt_token_ids = prompt_token_ids
        if spec.complete is not None:
            spec.complete(tokenizer)
        for index in range(spec.n):
            matcher = spec.stops.matcher(spec.include_stop, spec.min_tokens) if spec.stops is not None else None
            if spec.chat_output is None or new_parser is None:
                decoder = tokenizer.decoder(prompt_token_ids, spec.skip_special_tokens)
                choice = Choice(index, self, decoder, matcher, spec.include_stop)
            else:
                decoder = tokenizer.parsing_decoder(prompt_token_ids, spec.skip_special_tokens)
                one_call = not spec.chat_output.tools.parallel
                choice = ParsedChoice(index, self, decoder, matcher, spec.include_stop, new_parser(), one_call)
            self._choices.append(choice)
            request = spec.engine_request(prompt_token_ids, index, seconds_left)
            choice.cancel_stream = self._generator.start_stream(request, choice)

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
