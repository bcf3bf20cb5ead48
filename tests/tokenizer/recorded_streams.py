"""A text generator whose engine side keeps what is started and cancelled, and a sink that keeps what is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client import CollectorRegistry

from services.chassis.drain import Drain
from services.chassis.errors import NotFound, ServiceError, Unavailable
from services.tokenizer.events import EngineSink, Finish, FinishReason, Parsed, PromptDetail, Usage
from services.tokenizer.generation import TextGeneration, TextGenerator
from services.tokenizer.logprobs import TextLogprobs
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.prompt import Prompt, TokenPrompt
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_spec import TextSpec
from services.tokenizer.text_tokenizer import TextTokenizer

# What the recording engine side is asked for: prompt ids, choice, seconds left.
Asked = tuple[list[int], int, float | None]
DONE = Finish(FinishReason.LENGTH, None, Usage(0, 0, 0))


@dataclass
class Streams:
    """The engine's side: keeps what is started, in order, and what is cancelled. `room` streams can start."""

    room: int = 1000
    asked: list[Asked] = field(default_factory=list)
    sinks: list[EngineSink] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)

    def start(self, request: Asked, sink: EngineSink) -> Callable[[], None]:
        """Begin a stream."""
        if len(self.sinks) >= self.room:
            raise Unavailable("no connection to the engine; try again")
        self.asked.append(request)
        self.sinks.append(sink)
        number = len(self.sinks) - 1
        return lambda: self.cancelled.append(number)


@dataclass
class Events:
    """A text sink that keeps all it gets."""

    events: list[tuple[object, ...]] = field(default_factory=list)
    prompt: PromptDetail | None = None
    logprobs: list[TextLogprobs | None] = field(default_factory=list)
    parsed: list[Parsed | None] = field(default_factory=list)

    def started(self, model: str, prompt_tokens: int, cached_tokens: int, prompt: PromptDetail | None = None) -> None:
        """Keep it."""
        self.prompt = prompt
        self.events.append(("started", model, prompt_tokens, cached_tokens))

    def delta(
        self,
        index: int,
        token_ids: list[int],
        text: str,
        logprobs: TextLogprobs | None = None,
        parsed: Parsed | None = None,
    ) -> None:
        """Keep it."""
        self.logprobs.append(logprobs)
        self.parsed.append(parsed)
        self.events.append(("delta", index, list(token_ids), text))

    def finished(self, index: int, finish: Finish) -> None:
        """Keep it."""
        self.events.append(("finished", index, finish))

    def failed(self, error: ServiceError) -> None:
        """Keep it."""
        self.events.append(("failed", error))

    def of(self, kind: str) -> list[tuple[object, ...]]:
        """Those of one kind."""
        return [event for event in self.events if event[0] == kind]

    @property
    def error(self) -> ServiceError:
        """The one failure."""
        (event,) = self.of("failed")
        assert isinstance(event[1], ServiceError)
        return event[1]


class Blocked:
    """A large prompt whose encoding takes until `release` is set."""

    size = 10**6

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """Nobody knows."""
        return 0

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Wait, then give one id."""
        self.entered.set()
        assert self.release.wait(10)
        return [500]


class Broken:
    """A prompt that cannot be encoded for an unknown reason."""

    size = 1

    def least_tokens(self, tokenizer: TextTokenizer) -> int:
        """Nobody knows."""
        return 0

    def token_ids(self, tokenizer: TextTokenizer) -> list[int]:
        """Fail."""
        raise RuntimeError("secret of the prompt")


@dataclass
class Setup:
    """A generator with its surroundings."""

    model: TextModel
    admission: Drain = field(default_factory=lambda: Drain(8, "generations"))
    streams: Streams = field(default_factory=Streams)
    sink: Events = field(default_factory=Events)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        metrics = TokenizerMetrics(self.registry, self.admission)
        self.generator = TextGenerator[Asked](self._find, self.streams.start, self.admission, metrics)

    def _find(self, name: str) -> TextModel:
        if name:
            raise NotFound(f"model {name!r} does not exist", param="model")
        return self.model

    def admit(self, prompt: Prompt | None = None, **changes: Any) -> TextGeneration[Asked]:
        """Admit a generation that reports to `sink`."""
        spec: TextSpec[Asked] = TextSpec(
            request_id="r-1",
            model="",
            prompt=prompt or TokenPrompt([500]),
            n=1,
            stops=None,
            include_stop=False,
            skip_special_tokens=True,
            deadline_seconds=None,
            engine_request=lambda ids, index, seconds: (ids, index, seconds),
        )
        return self.generator.admit(replace(spec, **changes), self.sink)

    async def begin(self, **changes: Any) -> TextGeneration[Asked]:
        """Admit a generation and run it up."""
        generation = self.admit(**changes)
        await generation.run_up()
        return generation

    def metric(self, name: str) -> float | None:
        """The value of a metric."""
        return self.registry.get_sample_value(name)
