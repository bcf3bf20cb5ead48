"""The models of this engine: their life from loading to failure and back."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum

import structlog

from services.chassis.changes import Changes
from services.chassis.drain import Drain
from services.chassis.errors import Draining, Loading, NotFound, Unavailable
from services.engine.generation import Generation, Generations, Sink
from services.engine.metrics import ModelMetrics
from services.engine.port import Engine, EngineDead, EngineLoader, Limits, Load
from services.engine.tokenizer_files import TokenizerFile, read_tokenizer_files, tokenizer_digest
from services.engine.validation import GenerationSpec
from services.engine.warm_up import warm_up

log = structlog.get_logger(__name__)

_WATCH_INTERVAL_SECONDS = 1.0
# Pauses before the engine is loaded again, by the number of failures in a row.
_RELOAD_SECONDS = (1.0, 5.0, 30.0)


class ModelState(Enum):
    """Where a model is in its life."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What callers may know of a model."""

    name: str
    state: ModelState
    created_unix_seconds: int
    limits: Limits | None
    max_generations: int
    load: Load
    failure: str
    tokenizer_digest: str


class Model:
    """One model: loads it, loads it again when its engine dies, and starts generations on it.

    Args:
        name: by which requests select it.
        loader: knows how to load it.
        admission: places for choices.
        metrics: its metrics.
        changes: is told of each change.
        reload_seconds: pauses before its engine is loaded again, by the number
            of failures in a row; the last one repeats.
    """

    def __init__(
        self,
        name: str,
        loader: EngineLoader,
        admission: Drain,
        metrics: ModelMetrics,
        changes: Changes,
        reload_seconds: Sequence[float] = _RELOAD_SECONDS,
    ) -> None:
        self.name = name
        self._loader = loader
        self._admission = admission
        self._metrics = metrics
        self._changes = changes
        self._reload_seconds = reload_seconds
        self._ever_ready = False
        self._failures = 0
        self._created = int(time.time())
        self._state = ModelState.LOADING
        self._failure = ""
        self._limits: Limits | None = None
        self._load = Load(0, 0, 0.0)
        self._generations: Generations | None = None
        self._tokenizer: Sequence[TokenizerFile] = ()

    @property
    def ready(self) -> bool:
        """Whether requests are served."""
        return self._state is ModelState.READY

    def status(self) -> ModelStatus:
        """What callers may know of it now."""
        return ModelStatus(
            self.name,
            self._state,
            self._created,
            self._limits,
            self._admission.limit,
            self._load,
            self._failure,
            tokenizer_digest(self._tokenizer) if self._tokenizer else "",
        )

    def tokenizer_files(self) -> Sequence[TokenizerFile]:
        """The files of its tokenizer.

        Raises:
            Loading: they are not known yet.
        """
        if not self._tokenizer:
            raise Loading(f"model {self.name} is being loaded; try again later")
        return self._tokenizer

    def start(self, spec: GenerationSpec, sink: Sink) -> Generation:
        """Begin a generation; see `Generations.start`.

        Raises:
            Loading: it is not ready yet.
            Unavailable: its engine failed.
        """
        if self._generations is None or not self.ready:
            if self._state is ModelState.DRAINING:
                raise Draining(f"model {self.name} takes nothing new; try another engine")
            if self._state is ModelState.FAILED:
                raise Unavailable(f"the engine of model {self.name} failed and is being restarted; try again later")
            raise Loading(f"model {self.name} is being loaded; try again later")
        return self._generations.start(spec, sink)

    def begin_drain(self) -> None:
        """Tell watchers that nothing new is taken."""
        if self.ready:
            self._become(ModelState.DRAINING)

    async def run(self) -> None:
        """Load the model and serve it until cancelled; when its engine dies, load it again.

        Raises:
            EngineDead: it could not be loaded the first time.
        """
        while True:
            try:
                async with self._loader.load() as engine:
                    await self._serve(engine)
            except EngineDead as dead:
                if not self._ever_ready:
                    raise
                pause = self._reload_seconds[min(self._failures, len(self._reload_seconds) - 1)]
                self._failures += 1
                log.error("engine died", model=self.name, reason=str(dead), restart_in_seconds=pause)
                self._become(ModelState.FAILED, failure=str(dead))
                self._metrics.restarts.inc()
                await asyncio.sleep(pause)
                self._become(ModelState.LOADING, failure=str(dead))

    async def _serve(self, engine: Engine) -> None:
        self._limits = engine.limits
        if not self._tokenizer:
            self._tokenizer = await asyncio.to_thread(read_tokenizer_files, self._loader.tokenizer_directory)
        generations: Generations | None = None
        try:
            async with asyncio.TaskGroup() as group:
                generations = Generations(engine, self._admission, self._metrics, self._on_load, group)
                self._generations = generations
                running = group.create_task(engine.run(generations.on_step))
                seconds = await warm_up(generations)
                # vLLM's part of the heap is large, and a collection that walks it holds up every stream.
                gc.freeze()
                log.info("model ready", model=self.name, warm_up_seconds=round(seconds, 3))
                self._become(ModelState.READY)
                self._ever_ready, self._failures = True, 0
                await running
        except* EngineDead as dead:
            # Told before what it holds is freed, which takes seconds.
            self._become(ModelState.FAILED, failure=str(dead.exceptions[0]))
            # A group of one: the engine's own.
            raise dead.exceptions[0] from None
        finally:
            self._generations = None
            if generations is not None:
                generations.fail_all(
                    Unavailable(f"the engine of model {self.name} ended; try again", reason="ENGINE_FAILED")
                )
            self._metrics.set_load(Load(0, 0, 0.0))
            self._on_load(Load(0, 0, 0.0))

    def _on_load(self, load: Load) -> None:
        if load != self._load:
            self._load = load
            self._changes.mark()

    def _become(self, state: ModelState, failure: str = "") -> None:
        self._state = state
        self._failure = failure
        self._changes.mark()


class Models:
    """The models of this engine by name."""

    def __init__(self, models: Sequence[Model], changes: Changes) -> None:
        self._by_name = {model.name: model for model in sorted(models, key=lambda model: model.name)}
        self._changes = changes

    @property
    def ready(self) -> bool:
        """Whether all models serve requests."""
        return all(model.ready for model in self._by_name.values())

    def begin_drain(self) -> None:
        """Tell watchers that nothing new is taken."""
        for model in self._by_name.values():
            model.begin_drain()

    def find(self, name: str) -> Model:
        """The model of this name; with an empty name, the only one.

        Raises:
            NotFound: there is none of this name.
        """
        if not name and len(self._by_name) == 1:
            return next(iter(self._by_name.values()))
        model = self._by_name.get(name)
        if model is None:
            raise NotFound(
                f"model {name!r} does not exist; served are {', '.join(self._by_name)}",
                param="model",
                reason="MODEL_NOT_FOUND",
            )
        return model

    def statuses(self) -> list[ModelStatus]:
        """All models in order of name."""
        return [model.status() for model in self._by_name.values()]

    async def watch(self) -> AsyncGenerator[list[ModelStatus], None]:
        """Yield the statuses at once, then after changes, at most about once a second."""
        async with aclosing(self._changes.each(_WATCH_INTERVAL_SECONDS)) as changes:
            async for _ in changes:
                yield self.statuses()
