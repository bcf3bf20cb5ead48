"""`EngineService` as gRPC calls it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc.aio
import structlog

from services.chassis.errors import ServiceError, Unavailable, Unsupported
from services.chassis.link_server import serve_link
from services.chassis.mailbox import Mailbox
from services.engine import wire
from services.engine.generation import Generation, Usage
from services.engine.models import Models
from services.engine.port import Finish, Logprobs, Prefilled
from services.engine.served_link import EngineOutbox, ServedLink
from streamomni.engine.v1 import engine_pb2, engine_pb2_grpc, models_pb2

Context = grpc.aio.ServicerContext[Any, Any]

# What waits for the slow reader of one generation.
_BACKLOG_LIMIT_BYTES = 256 * 1024
_FILE_PIECE_BYTES = 1024 * 1024


class EngineServicer(engine_pb2_grpc.EngineServiceServicer):
    """Serves the models of this engine."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def Generate(
        self, request: engine_pb2.GenerateRequest, context: Context
    ) -> AsyncGenerator[engine_pb2.GenerateResponse, None]:
        """One generation over one call."""
        model = self._models.find(request.model)
        spec = wire.generation_spec(request)
        # This task serves one request alone; the boundary's lines shall name it too.
        structlog.contextvars.bind_contextvars(request_id=spec.request_id)
        sink = _CallSink(model.name, spec.n)
        generation = sink.generation = model.start(spec, sink)
        try:
            async with aclosing(sink.mailbox.batches()) as batches:
                async for batch in batches:
                    for response in batch:
                        yield response
        finally:
            generation.cancel()

    async def GenerateMany(  # type: ignore[override]  # writes its frames itself, which grpc.aio allows
        self, request_iterator: AsyncIterator[engine_pb2.GenerateManyRequest], context: Context
    ) -> None:
        """The link."""
        outbox = EngineOutbox()
        link = ServedLink(self._models, outbox)
        try:
            await serve_link(request_iterator, context, link.execute, outbox)
        finally:
            link.cancel_all()

    async def ListModels(
        self, request: models_pb2.ListModelsRequest, context: Context
    ) -> models_pb2.ListModelsResponse:
        """The models now."""
        return models_pb2.ListModelsResponse(models=map(wire.model_message, self._models.statuses()))

    async def WatchModels(
        self, request: models_pb2.WatchModelsRequest, context: Context
    ) -> AsyncGenerator[models_pb2.WatchModelsResponse, None]:
        """The models now and after each change."""
        async with aclosing(self._models.watch()) as changes:
            async for statuses in changes:
                yield models_pb2.WatchModelsResponse(models=map(wire.model_message, statuses))

    async def LoadModel(  # type: ignore[override]  # it has nothing to stream yet
        self, request: models_pb2.LoadModelRequest, context: Context
    ) -> None:
        """Refused: not built yet."""
        raise Unsupported("loading a model while running is not built yet; restart the engine with it")

    async def UnloadModel(
        self, request: models_pb2.UnloadModelRequest, context: Context
    ) -> models_pb2.UnloadModelResponse:
        """Refused: not built yet."""
        raise Unsupported("unloading a model is not built yet; stop the engine")

    async def GetTokenizer(
        self, request: models_pb2.GetTokenizerRequest, context: Context
    ) -> AsyncGenerator[models_pb2.GetTokenizerResponse, None]:
        """A model's tokenizer files in pieces."""
        for file in self._models.find(request.model).tokenizer_files():
            first = file.content[:_FILE_PIECE_BYTES]
            yield models_pb2.GetTokenizerResponse(
                name=file.name, size_bytes=len(file.content), sha256=file.sha256, content=first
            )
            for begin in range(_FILE_PIECE_BYTES, len(file.content), _FILE_PIECE_BYTES):
                piece = file.content[begin : begin + _FILE_PIECE_BYTES]
                yield models_pb2.GetTokenizerResponse(name=file.name, content=piece)


class _CallSink:
    """Hands one generation's events to the call that reads them."""

    generation: Generation

    def __init__(self, model: str, choices: int) -> None:
        self.mailbox = Mailbox[engine_pb2.GenerateResponse](_BACKLOG_LIMIT_BYTES)
        self._model = model
        self._unfinished = choices

    def started(self, prompt_tokens: int, prefilled: Prefilled) -> None:
        self._put(engine_pb2.GenerateResponse(started=wire.started(prompt_tokens, prefilled, self._model)))

    def delta(self, index: int, token_ids: list[int], logprobs: Logprobs | None) -> None:
        self._put(engine_pb2.GenerateResponse(delta=wire.delta(index, token_ids, logprobs)))

    def finished(self, index: int, finish: Finish, usage: Usage) -> None:
        self._put(engine_pb2.GenerateResponse(finished=wire.finished(index, finish, usage)))
        self._unfinished -= 1
        if self._unfinished == 0:
            self.mailbox.close()

    def failed(self, error: ServiceError) -> None:
        self.mailbox.close(error)

    def _put(self, response: engine_pb2.GenerateResponse) -> None:
        if not self.mailbox.put(response, response.ByteSize()):
            self.generation.cancel()
            self.mailbox.close(Unavailable(f"cancelled: its reader lags more than {_BACKLOG_LIMIT_BYTES} bytes behind"))
