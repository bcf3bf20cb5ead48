"""The tokenizer's parts before the real engine tier over a scripted engine, each on a port of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import grpc.aio
from prometheus_client import CollectorRegistry
from tokenizers import Tokenizer

from services.chassis.changes import Changes
from services.chassis.channel import open_channel
from services.chassis.drain import Drain
from services.chassis.errors import ServiceError
from services.chassis.grpc_server import grpc_server
from services.chassis.status import error_of_call
from services.chassis.tls import ServerTls
from services.engine.metrics import EngineMetrics
from services.engine.models import Model, Models
from services.engine.port import EngineRequest, Load
from services.engine.servicer import EngineServicer
from services.tokenizer.engine_link import EngineLink
from services.tokenizer.filters.metrics import FilterMetrics
from services.tokenizer.filters.output_filters import OutputFilters
from services.tokenizer.generation import TextGenerator
from services.tokenizer.metrics import TokenizerMetrics
from services.tokenizer.models_client import ModelsClient
from services.tokenizer.servicer import TextServicer
from streamomni.engine.v1 import engine_pb2_grpc, sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.fakes.scripted_engine import ScriptedLoader, Shape

ENGINE_SERVICE = "streamomni.engine.v1.EngineService"
TEXT_SERVICE = "streamomni.text.v1.TextService"
MODEL = "scripted"
# The default model's <|im_end|>, one of the scripted engine's end tokens.
END = 2
SHAPE = Shape()


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """Wait for a condition; fail when it does not come true in time."""
    async with asyncio.timeout(seconds):
        # What is waited for happens behind a socket: nothing would set an event.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@dataclass
class Lines:
    """The engine's script: it says the prompt back, or what `by_seed` holds for the request's seed.

    Then it ends, or with ignore_eos begins again. `requests` are those that the engine computed.
    """

    by_seed: dict[int, list[int]] = field(default_factory=dict)
    requests: list[EngineRequest] = field(default_factory=list)

    def __call__(self, request: EngineRequest) -> Iterator[int]:
        """The ids of one request, without end."""
        self.requests.append(request)
        ids = self.by_seed.get(request.sampling.seed or 0, list(request.prompt_token_ids))
        return itertools.cycle(ids) if request.sampling.ignore_eos else itertools.chain(ids, itertools.repeat(END))


@dataclass
class EngineTier:
    """A running engine tier."""

    port: int
    loader: ScriptedLoader
    model: Model
    admission: Drain
    lines: Lines

    @property
    def load(self) -> Load:
        """What its engine works on."""
        return self.model.status().load

    def idle(self) -> bool:
        """Whether nothing is left of any request, in the tier and in its engine."""
        return self.admission.active == 0 and self.load == Load(0, 0, 0.0)


@asynccontextmanager
async def running_engine(
    directory: Path,
    *,
    port: int = 0,
    shape: Shape = SHAPE,
    tick_seconds: float = 0.001,
    load_seconds: float = 0.0,
    max_generations: int = 1024,
    servicer: Callable[[Models], EngineServicer] = EngineServicer,
    tls: ServerTls | None = None,
) -> AsyncGenerator[EngineTier, None]:
    """Serve a scripted model with the tokenizer of `directory`."""
    changes, lines = Changes(), Lines()
    tokenizer = cache(lambda: Tokenizer.from_file(str(directory / "tokenizer.json")))
    shape = replace(shape, encode=lambda text: tokenizer().encode(text, add_special_tokens=False).ids)
    admission = Drain(max_generations, "generations")
    loader = ScriptedLoader(directory, shape=shape, script=lines, tick_seconds=tick_seconds, load_seconds=load_seconds)
    model = Model(MODEL, loader, admission, EngineMetrics(CollectorRegistry()).of_model(MODEL), changes)

    def register(server: grpc.aio.Server) -> None:
        engine_pb2_grpc.add_EngineServiceServicer_to_server(servicer(Models([model], changes)), server)

    running = asyncio.create_task(model.run())
    try:
        # The server goes first, as when the process dies: its clients lose their calls, not their generations.
        async with grpc_server("127.0.0.1", port, [ENGINE_SERVICE], register, tls) as (bound_port, _):
            if not load_seconds:
                await until(lambda: model.ready)
                # Those of the warm-up.
                lines.requests.clear()
            yield EngineTier(bound_port, loader, model, admission, lines)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@dataclass
class TextTier:
    """A running tokenizer tier, and a client of it."""

    engine: EngineTier
    port: int
    channel: grpc.aio.Channel
    stub: text_pb2_grpc.TextServiceAsyncStub
    admission: Drain
    models: ModelsClient
    link: EngineLink
    registry: CollectorRegistry

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens."""
        return self.models.find("").tokenizer.encode(text, False)

    def idle(self) -> bool:
        """Whether nothing is left of any request in both tiers."""
        return self.admission.active == 0 and self.engine.idle()

    async def generate(self, request: text_pb2.GenerateRequest) -> Answer:
        """Run one public generation to its end."""
        answer = Answer()
        call = self.stub.Generate(request)
        try:
            async for response in call:
                answer.take(response)
        except grpc.aio.AioRpcError as error:
            answer.error = error_of_call(error)
        finally:
            call.cancel()
        return answer

    @asynccontextmanager
    async def streaming(self, request: text_pb2.GenerateRequest) -> AsyncGenerator[grpc.aio.UnaryStreamCall[Any, Any]]:
        """A public generation whose first delta has come; leaving the block cancels it."""
        call = self.stub.Generate(request)
        try:
            async for response in call:
                if response.HasField("delta"):
                    break
            yield call
        finally:
            call.cancel()


@asynccontextmanager
async def running_text(
    engine: EngineTier, *, max_generations: int = 4096, filters_file: Path | None = None
) -> AsyncGenerator[TextTier, None]:
    """Serve text before an engine, composed as the process does it."""
    registry, address = CollectorRegistry(), f"127.0.0.1:{engine.port}"
    admission = Drain(max_generations, "generations")
    async with open_channel(address) as link_channel, open_channel(address) as channel:
        link, models = EngineLink(address, link_channel, Changes()), ModelsClient(address, channel, Changes())
        filters = None if filters_file is None else OutputFilters(filters_file, FilterMetrics(registry))
        generator = TextGenerator(models.find, link.start, admission, TokenizerMetrics(registry, admission), filters)

        def register(server: grpc.aio.Server) -> None:
            text_pb2_grpc.add_TextServiceServicer_to_server(TextServicer(generator, models), server)

        async with grpc_server("127.0.0.1", 0, [TEXT_SERVICE], register) as (port, _):
            running = [asyncio.create_task(link.run()), asyncio.create_task(models.run())]
            try:
                await until(lambda: link.connected and models.ready, 20)
                async with open_channel(f"127.0.0.1:{port}") as client:
                    await client.channel_ready()
                    stub = text_pb2_grpc.TextServiceStub(client)
                    yield TextTier(engine, port, client, stub, admission, models, link, registry)
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def running_tiers(
    directory: Path, *, filters_file: Path | None = None, **options: Any
) -> AsyncGenerator[TextTier, None]:
    """Serve both tiers; `options` are those of `running_engine`."""
    async with (
        running_engine(directory, **options) as engine,
        running_text(engine, filters_file=filters_file) as text,
    ):
        yield text


def sampling(**params: Any) -> sampling_pb2.SamplingParams:
    """Sampling parameters."""
    return sampling_pb2.SamplingParams(**params)


def endless(**params: Any) -> sampling_pb2.SamplingParams:
    """Sampling parameters of a generation that ends with the context only."""
    return sampling_pb2.SamplingParams(ignore_eos=True, **params)


def asking(ids: list[int], **fields: Any) -> text_pb2.GenerateRequest:
    """A request whose prompt is these ids, which the engine says back."""
    return text_pb2.GenerateRequest(tokens=text_pb2.TokenPrompt(token_ids=ids), **fields)


@dataclass
class Answer:
    """What came of one generation."""

    started: list[text_pb2.Started] = field(default_factory=list)
    deltas: list[text_pb2.Delta] = field(default_factory=list)
    finishes: dict[int, text_pb2.Finished] = field(default_factory=dict)
    error: ServiceError | None = None
    after_end: int = 0
    """Events of choices that had ended."""

    def take(self, event: text_pb2.GenerateResponse) -> None:
        """Take one event."""
        if event.HasField("started"):
            self.after_end += bool(self.deltas or self.finishes)
            self.started.append(event.started)
        elif event.HasField("delta"):
            self.after_end += event.delta.index in self.finishes
            self.deltas.append(event.delta)
        else:
            self.after_end += event.finished.index in self.finishes
            self.finishes[event.finished.index] = event.finished

    def text(self, index: int = 0) -> str:
        """The text of a choice."""
        return "".join(delta.text for delta in self.deltas if delta.index == index)

    def token_ids(self, index: int = 0) -> list[int]:
        """The ids of a choice."""
        return [token_id for delta in self.deltas if delta.index == index for token_id in delta.token_ids]

    @property
    def finish(self) -> text_pb2.Finished:
        """The end of the only choice."""
        (finish,) = self.finishes.values()
        return finish
