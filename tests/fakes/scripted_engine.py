"""An engine that needs no model: the port's rules, with token ids from a script."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path

from services.chassis.errors import InvalidRequest, Unsupported
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
    Step,
)
from services.engine.structured_output import StructuredOutput
from tests.fakes.prefix_cache import PrefixCache
from tests.fakes.schema_instance import Known, forced_text

Script = Callable[[EngineRequest], Iterator[int]]

_MASK = 2**64 - 1
# A bias beyond this decides alone, as it does against the logits of a real model.
_DECIDING_BIAS = 50.0


def noise(request: EngineRequest) -> Iterator[int]:
    """Endless token ids that depend on the prompt and, when sampling, on the seed."""
    seed = None if request.sampling.temperature == 0 else request.sampling.seed
    state = hash((tuple(request.prompt_token_ids), seed)) & _MASK
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & _MASK
        yield state >> 33


TINY_LIMITS = Limits(context_length=2048, vocab_size=49152, max_logprobs=20, supports_priority=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a scripted model looks like; the defaults are those of the tiny random model in the tests."""

    limits: Limits = TINY_LIMITS
    end_token_ids: tuple[int, ...] = (2, 5)
    max_num_seqs: int = 64
    kv_cache_tokens: int = 2048 * 64
    encode: Callable[[str], Sequence[int]] = str.encode
    """Token ids of the text that structured output forces; a byte a token where no tokenizer matters."""


class ScriptedLoader:
    """Loads scripted engines.

    Args:
        tokenizer_directory: where tokenizer files lie.
        shape: the model's.
        script: token ids by request; they are taken modulo the vocabulary.
        tick_seconds: time of one step.
        load_seconds: time that loading takes.
    """

    def __init__(
        self,
        tokenizer_directory: Path,
        *,
        shape: Shape = Shape(),
        script: Script = noise,
        tick_seconds: float = 0.0,
        load_seconds: float = 0.0,
    ) -> None:
        self._tokenizer_directory = tokenizer_directory
        self.shape = shape
        self.script = script
        self.tick_seconds = tick_seconds
        self.load_seconds = load_seconds
        self.failing_loads = 0
        self.engines: list[ScriptedEngine] = []

    @property
    def tokenizer_directory(self) -> Path:
        """Where the tokenizer's files lie."""
        return self._tokenizer_directory

    @property
    def engine(self) -> ScriptedEngine:
        """The engine loaded last."""
        return self.engines[-1]

    @asynccontextmanager
    async def load(self) -> AsyncGenerator[Engine, None]:
        """Load an engine.

        Raises:
            EngineDead: `failing_loads` says so.
        """
        await asyncio.sleep(self.load_seconds)
        if self.failing_loads > 0:
            self.failing_loads -= 1
            raise EngineDead("the scripted model cannot be loaded")
        engine = ScriptedEngine(self.shape, self.script, self.tick_seconds)
        self.engines.append(engine)
        try:
            yield engine
        finally:
            engine.closed = True


@dataclass(slots=True)
class _Live:
    """A request that is queued or scheduled."""

    request: EngineRequest
    candidates: Iterator[int]
    most_tokens: int
    stop_token_ids: frozenset[int]
    end_token_ids: frozenset[int]
    token_ids: list[int] = field(default_factory=list)


class ScriptedEngine:
    """One scripted model; see `services.engine.port.Engine`.

    A step is computed from what was asked before it and handed out a tick later, so what is aborted meanwhile still
    comes once, as it does from an engine in another process.
    """

    def __init__(self, shape: Shape, script: Script, tick_seconds: float) -> None:
        self.tick_seconds = tick_seconds
        self.compile_seconds = 0.0
        self.closed = False
        self._shape = shape
        self._script = script
        self._operations: deque[EngineRequest | list[str]] = deque()
        self._waiting: dict[str, _Live] = {}
        self._running: dict[str, _Live] = {}
        self._cache = PrefixCache()
        self._wake = asyncio.Event()
        self._dead = False
        self._hung = False

    @property
    def limits(self) -> Limits:
        """What requests may ask."""
        return self._shape.limits

    async def compile(self, output: StructuredOutput) -> object:
        """Take a choice or a schema after `compile_seconds`; the first text that it allows is then said.

        Raises:
            Unsupported: it is another kind.
        """
        await asyncio.sleep(self.compile_seconds)
        if not isinstance(output, Known):
            raise Unsupported("the scripted engine knows choices and schemas only", param="structured_output")
        return output

    def add(self, request: EngineRequest) -> None:
        """Queue a request.

        Raises:
            InvalidRequest: it is one that vLLM refuses.
        """
        limits, sampling = self._shape.limits, request.sampling
        if not 0 < len(request.prompt_token_ids) < limits.context_length:
            raise InvalidRequest("the engine refuses the request: the prompt does not fit the context")
        if sampling.temperature is not None and sampling.temperature < 0:
            raise InvalidRequest("the engine refuses the request: the temperature is negative")
        if any(token_id >= limits.vocab_size for token_id in (*sampling.allowed_token_ids, *sampling.logit_bias)):
            raise InvalidRequest("the engine refuses the request: a token id is not in the vocabulary")
        self._operations.append(request)
        self._wake.set()

    def abort(self, request_ids: Sequence[str]) -> None:
        """End requests, after their `add`."""
        self._operations.append(list(request_ids))
        self._wake.set()

    def die(self) -> None:
        """Make `run` raise `EngineDead`."""
        self._dead = True
        self._wake.set()

    def hang(self) -> None:
        """Give no more steps, until `resume`."""
        self._hung = True

    def resume(self) -> None:
        """Go on after `hang`."""
        self._hung = False
        self._wake.set()

    async def run(self, on_step: Callable[[Step], None]) -> None:
        """Call `on_step` after each step until cancelled.

        Raises:
            EngineDead: after `die`.
        """
        while True:
            while not self._dead and (self._hung or not (self._operations or self._running or self._waiting)):
                self._wake.clear()
                await self._wake.wait()
            step = self._step()
            await asyncio.sleep(self.tick_seconds)
            if self._dead:
                raise EngineDead("the scripted engine died")
            on_step(step)

    def _step(self) -> Step:
        while self._operations:
            operation = self._operations.popleft()
            if isinstance(operation, EngineRequest):
                self._waiting[operation.request_id] = self._live(operation)
            else:
                for request_id in operation:
                    self._waiting.pop(request_id, None)
                    self._running.pop(request_id, None)
        while self._waiting and len(self._running) < self._shape.max_num_seqs:
            request_id = next(iter(self._waiting))
            self._running[request_id] = self._waiting.pop(request_id)
        outputs = [self._advance(live) for live in self._running.values()]
        for output in outputs:
            if output.finish is not None:
                del self._running[output.request_id]
        used = sum(len(live.request.prompt_token_ids) + len(live.token_ids) for live in self._running.values())
        usage = min(1.0, used / self._shape.kv_cache_tokens)
        return Step(outputs, Load(len(self._running), len(self._waiting), usage))

    def _live(self, request: EngineRequest) -> _Live:
        sampling, shape = request.sampling, self._shape
        room = shape.limits.context_length - len(request.prompt_token_ids)
        most = room if sampling.max_tokens is None else min(room, sampling.max_tokens)
        ends = frozenset() if sampling.ignore_eos else frozenset(shape.end_token_ids)
        script = self._script(request)
        if isinstance(request.constraint, Known):
            script = chain(shape.encode(forced_text(request.constraint)), repeat(shape.end_token_ids[0]))
        return _Live(request, script, most, frozenset(sampling.stop_token_ids), ends)

    def _advance(self, live: _Live) -> Output:
        request, sampling = live.request, live.request.sampling
        prefilled = None
        if not live.token_ids:
            cached = self._cache.take(request) if sampling.prompt_logprobs is None else 0
            prefilled = Prefilled(cached, self._prompt_logprobs(request))
        token_id = self._choose(live)
        live.token_ids.append(token_id)
        logprobs = None if sampling.logprobs is None else self._logprobs([token_id], sampling.logprobs)
        return Output(request.request_id, [token_id], prefilled, logprobs, _finish(live, token_id))

    def _choose(self, live: _Live) -> int:
        sampling, vocab_size = live.request.sampling, self._shape.limits.vocab_size
        token_id = next(live.candidates) % vocab_size
        if not (sampling.logit_bias or sampling.allowed_token_ids or sampling.min_tokens):
            return token_id
        if sampling.logit_bias:
            favourite = max(sampling.logit_bias, key=sampling.logit_bias.__getitem__)
            if sampling.logit_bias[favourite] >= _DECIDING_BIAS:
                token_id = favourite
        if sampling.allowed_token_ids:
            token_id = sampling.allowed_token_ids[token_id % len(sampling.allowed_token_ids)]
        banned = {other for other, bias in sampling.logit_bias.items() if bias <= -_DECIDING_BIAS}
        if len(live.token_ids) < sampling.min_tokens:
            banned |= live.stop_token_ids | set(self._shape.end_token_ids)
        while token_id in banned:
            token_id = (token_id + 1) % vocab_size
        return token_id

    def _prompt_logprobs(self, request: EngineRequest) -> Logprobs | None:
        count = request.sampling.prompt_logprobs
        return None if count is None else self._logprobs(list(request.prompt_token_ids[1:]), count)

    def _logprobs(self, token_ids: list[int], count: int) -> Logprobs:
        vocab_size = self._shape.limits.vocab_size
        return Logprobs(
            logprobs=[-0.5] * len(token_ids),
            ranks=[1] * len(token_ids),
            top_count=count,
            top_token_ids=[(token_id + place) % vocab_size for token_id in token_ids for place in range(count)],
            top_logprobs=[-0.5 - place for _ in token_ids for place in range(count)],
        )


def _finish(live: _Live, token_id: int) -> Finish | None:
    if len(live.token_ids) >= live.request.sampling.min_tokens:
        if token_id in live.end_token_ids:
            return Finish(FinishReason.STOP)
        if token_id in live.stop_token_ids:
            return Finish(FinishReason.STOP, token_id)
    return Finish(FinishReason.LENGTH) if len(live.token_ids) >= live.most_tokens else None
