"""The models of the engine, with their tokenizers."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import grpc.aio
import structlog

from services.chassis.changes import Changes
from services.chassis.errors import Loading, NotFound, Unavailable
from services.chassis.status import error_of_call
from services.tokenizer.output_parsers.selection import ParserNames
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_tokenizer import TextTokenizer
from services.tokenizer.tokenizer_files import KNOWN_NAMES, TokenizerFiles, TokenizerFilesError
from streamomni.engine.v1 import engine_pb2_grpc, models_pb2

log = structlog.get_logger(__name__)

_RECONNECT_SECONDS = 0.5


class ModelsClient:
    """Follows the engine's models and fetches each tokenizer once.

    Args:
        address: of the engine, for logs and error texts.
        channel: an open channel to it.
        changes: is told of each change.
        parsers: go before the output parsers that a model's files ask for.
        allow_control_tokens: of the tokenizers (see `TextTokenizer`).
    """

    def __init__(
        self,
        address: str,
        channel: grpc.aio.Channel,
        changes: Changes,
        parsers: ParserNames | None = None,
        allow_control_tokens: bool = False,
    ) -> None:
        self._address = address
        self._stub = engine_pb2_grpc.EngineServiceStub(channel)
        self._changes = changes
        self._parsers = parsers or ParserNames()
        self._allow_control_tokens = allow_control_tokens
        self._messages: Mapping[str, models_pb2.Model] = {}
        # Why the engine was lost last, so that each cause is logged once and not at each attempt.
        self._lost: str | None = None
        self._tokenizers: dict[str, TextTokenizer] = {}
        # Why a tokenizer cannot be used, by digest; tried again on the next connection.
        self._unusable: dict[str, str] = {}

    @property
    def ready(self) -> bool:
        """Whether at least one model serves requests."""
        return any(message.state == models_pb2.MODEL_STATE_READY for message in self._messages.values())

    def find(self, name: str) -> TextModel:
        """The model of this name; with an empty name, the only one.

        Raises:
            NotFound: there is none of this name.
            Loading: its tokenizer is not here yet.
            Unavailable: the engine cannot be reached, or the model failed.
        """
        if not self._messages:
            raise Unavailable(f"the engine at {self._address} cannot be reached; try again later")
        if not name and len(self._messages) == 1:
            name = next(iter(self._messages))
        message = self._messages.get(name)
        if message is None:
            raise NotFound(
                f"model {name!r} does not exist; served are {', '.join(self._messages)}",
                param="model",
                reason="MODEL_NOT_FOUND",
            )
        tokenizer = self._tokenizers.get(message.tokenizer_sha256)
        if tokenizer is None and message.state == models_pb2.MODEL_STATE_FAILED:
            raise Unavailable(f"model {name} failed: {message.failure}", reason="MODEL_FAILED")
        if tokenizer is None:
            raise Loading(f"model {name} is being loaded; try again later")
        limits = message.limits
        return TextModel(name, tokenizer, limits.context_length or None, limits.vocab_size or None)

    def messages(self) -> list[models_pb2.Model]:
        """The models as the engine describes them, those without a tokenizer here as LOADING or FAILED."""
        return list(self._messages.values())

    async def watch(self) -> AsyncGenerator[list[models_pb2.Model], None]:
        """Yield the models at once, then after each change."""
        async with aclosing(self._changes.each()) as changes:
            async for _ in changes:
                yield self.messages()

    async def run(self) -> None:
        """Follow the engine until cancelled."""
        while True:
            call = self._stub.WatchModels(models_pb2.WatchModelsRequest())
            try:
                async for response in call:
                    await self._take(response)
            except grpc.aio.AioRpcError as error:
                cause = error_of_call(error).message
                if self._messages or cause != self._lost:
                    log.warning("engine lost", engine=self._address, error=cause)
                self._lost = cause
            finally:
                call.cancel()
            self._messages = {}
            self._unusable.clear()
            self._changes.mark()
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _take(self, response: models_pb2.WatchModelsResponse) -> None:
        for message in response.models:
            digest = message.tokenizer_sha256
            if digest and digest not in self._tokenizers and digest not in self._unusable:
                try:
                    self._tokenizers[digest] = await self._fetch(message.name)
                except TokenizerFilesError as error:
                    log.error("tokenizer unusable", model=message.name, error=str(error))
                    self._unusable[digest] = str(error)
            if digest in self._unusable:
                message.state = models_pb2.MODEL_STATE_FAILED
                message.failure = self._unusable[digest]
            if message.state == models_pb2.MODEL_STATE_READY and digest not in self._tokenizers:
                message.state = models_pb2.MODEL_STATE_LOADING
        self._messages = {message.name: message for message in response.models}
        self._changes.mark()

    async def _fetch(self, model: str) -> TextTokenizer:
        contents: dict[str, bytearray] = {}
        digests: dict[str, str] = {}
        call = self._stub.GetTokenizer(models_pb2.GetTokenizerRequest(model=model))
        try:
            async for piece in call:
                if piece.name not in contents:
                    contents[piece.name] = bytearray()
                    digests[piece.name] = piece.sha256
                contents[piece.name] += piece.content
        finally:
            call.cancel()
        # An engine may send files that text work has no use for.
        whole = {name: bytes(content) for name, content in contents.items() if name in KNOWN_NAMES}
        files = TokenizerFiles.verified(whole, {name: digests[name] for name in whole})
        tokenizer = await asyncio.to_thread(TextTokenizer, files, self._parsers, self._allow_control_tokens)
        # Its tables are large and stay: a collection that walks them holds up every stream.
        gc.freeze()
        log.info(
            "tokenizer ready",
            model=model,
            files=sorted(whole),
            encoder=tokenizer.encoder_backend,
            tool_parser=tokenizer.output_format.tools,
            reasoning_parser=tokenizer.output_format.reasoning,
        )
        return tokenizer
