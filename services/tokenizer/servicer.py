"""`TextService` as gRPC calls it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc.aio
import structlog

from services.chassis.errors import ServiceError, Unavailable, Unsupported
from services.chassis.link_server import serve_link
from services.chassis.mailbox import Mailbox
from services.tokenizer import findings_wire, logprobs_wire, tools_wire, wire
from services.tokenizer.context.window import answer_room, fitted
from services.tokenizer.context_policy import ContextPolicyKind
from services.tokenizer.events import Finish, Parsed, PromptDetail
from services.tokenizer.generation import TextGeneration
from services.tokenizer.limits_wire import check_detokenize
from services.tokenizer.logprobs import TextLogprobs
from services.tokenizer.models_client import ModelsClient
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.served_link import Generator, ServedLink, TextOutbox
from services.tokenizer.text_model import TextModel
from services.tokenizer.text_tokenizer import TextTokenizer
from streamomni.engine.v1 import engine_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]

# What waits for the slow reader of one generation.
_BACKLOG_LIMIT_BYTES = 256 * 1024


class TextServicer(text_pb2_grpc.TextServiceServicer):
    """Serves text with the models of the engine."""

    def __init__(self, generator: Generator, models: ModelsClient) -> None:
        self._generator = generator
        self._models = models

    async def Generate(
        self, request: text_pb2.GenerateRequest, context: Context
    ) -> AsyncGenerator[text_pb2.GenerateResponse, None]:
        """One generation over one call."""
        spec = wire.text_spec(request)
        # For lines that only know the call, such as that of a reader who takes nothing.
        structlog.contextvars.bind_contextvars(request_id=spec.request_id)
        sink = _CallSink(spec.n)
        generation = sink.generation = self._generator.admit(spec, sink)
        try:
            await generation.run_up()
            async with aclosing(sink.mailbox.batches()) as batches:
                async for batch in batches:
                    for response in batch:
                        yield response
        finally:
            generation.cancel()

    async def GenerateMany(  # type: ignore[override]  # writes its frames itself, which grpc.aio allows
        self, request_iterator: AsyncIterator[text_pb2.GenerateManyRequest], context: Context
    ) -> None:
        """The link."""
        outbox = TextOutbox()
        try:
            async with asyncio.TaskGroup() as group:
                link = ServedLink(self._generator, outbox, group)
                try:
                    await serve_link(request_iterator, context, link.execute, outbox)
                finally:
                    link.cancel_all()
        except ExceptionGroup as failures:
            # The boundary tells the peer one error, by its own class.
            raise failures.exceptions[0] from None

    async def Tokenize(self, request: text_pb2.TokenizeRequest, context: Context) -> text_pb2.TokenizeResponse:
        """Token ids of a text."""
        tokenizer = self._tokenizer(request.model)
        add_special_tokens = request.add_special_tokens if request.HasField("add_special_tokens") else True
        return text_pb2.TokenizeResponse(
            token_ids=await asyncio.to_thread(tokenizer.encode, request.text, add_special_tokens)
        )

    async def Detokenize(self, request: text_pb2.DetokenizeRequest, context: Context) -> text_pb2.DetokenizeResponse:
        """Text of token ids."""
        check_detokenize(request)
        model = self._models.find(request.model)
        model.check_token_ids(request.token_ids, "token_ids", "token_ids")
        skip_special_tokens = request.skip_special_tokens if request.HasField("skip_special_tokens") else True
        return text_pb2.DetokenizeResponse(
            text=await asyncio.to_thread(model.tokenizer.decode, list(request.token_ids), skip_special_tokens)
        )

    async def RenderChat(self, request: text_pb2.RenderChatRequest, context: Context) -> text_pb2.RenderChatResponse:
        """The prompt that a chat becomes."""
        model = self._models.find(request.model)
        return await asyncio.to_thread(_rendered, wire.chat_prompt(request.chat), model)

    async def ListModels(self, request: text_pb2.ListModelsRequest, context: Context) -> text_pb2.ListModelsResponse:
        """The models now."""
        return text_pb2.ListModelsResponse(models=self._models.messages())

    async def WatchModels(
        self, request: text_pb2.WatchModelsRequest, context: Context
    ) -> AsyncGenerator[text_pb2.WatchModelsResponse, None]:
        """The models now and after each change."""
        async with aclosing(self._models.watch()) as changes:
            async for models in changes:
                yield text_pb2.WatchModelsResponse(models=models)

    def _tokenizer(self, model: str) -> TextTokenizer:
        return self._models.find(model).tokenizer


def _rendered(chat: ChatPrompt, model: TextModel) -> text_pb2.RenderChatResponse:
    tokenizer = model.tokenizer
    if chat.policy.kind is ContextPolicyKind.SUMMARIZE:
        raise Unsupported(
            "RenderChat has no summary written; send context_policy ERROR or SLIDING_WINDOW", param="context_policy"
        )
    if chat.policy.kind is ContextPolicyKind.SLIDING_WINDOW and model.context_length is not None:
        chat = fitted(chat, tokenizer, model.context_length - answer_room(model.context_length, None)).chat
    segments = chat.segments(tokenizer)
    return text_pb2.RenderChatResponse(
        text="".join(segment.text for segment in segments), token_ids=tokenizer.encode_segments(segments)
    )


class _CallSink:
    """Hands one generation's events to the call that reads them."""

    generation: TextGeneration[engine_pb2.GenerateRequest]

    def __init__(self, choices: int) -> None:
        self.mailbox = Mailbox[text_pb2.GenerateResponse](_BACKLOG_LIMIT_BYTES)
        self._unfinished = choices

    def started(self, model: str, prompt_tokens: int, cached_tokens: int, prompt: PromptDetail | None = None) -> None:
        event = logprobs_wire.started(model, prompt_tokens, cached_tokens, prompt)
        # What is told of a prompt may fill the backlog by itself before its reader had a chance. The context bounds it.
        self.mailbox.put(text_pb2.GenerateResponse(started=event), 0)

    def delta(
        self,
        index: int,
        token_ids: list[int],
        text: str,
        logprobs: TextLogprobs | None = None,
        parsed: Parsed | None = None,
    ) -> None:
        response = text_pb2.GenerateResponse()
        delta = response.delta
        # The index is 0 for most, which would leave an empty message unset.
        delta.SetInParent()
        delta.index, delta.text = index, text
        delta.token_ids.extend(token_ids)
        if logprobs is not None:
            logprobs_wire.fill_text_logprobs(delta.logprobs, logprobs)
        if parsed is not None:
            delta.reasoning = parsed.reasoning
            delta.tool_calls.extend(tools_wire.pieces(parsed))
            delta.filter_matches.extend(findings_wire.filter_matches(parsed.filter_matches))
            delta.format_faults.extend(findings_wire.format_faults(parsed.format_faults))
        self._put(response)

    def finished(self, index: int, finish: Finish) -> None:
        self._put(text_pb2.GenerateResponse(finished=wire.finished(index, finish)))
        self._unfinished -= 1
        if self._unfinished == 0:
            self.mailbox.close()

    def failed(self, error: ServiceError) -> None:
        self.mailbox.close(error)

    def _put(self, response: text_pb2.GenerateResponse) -> None:
        if not self.mailbox.put(response, response.ByteSize()):
            self.generation.cancel()
            self.mailbox.close(Unavailable(f"cancelled: its reader lags more than {_BACKLOG_LIMIT_BYTES} bytes behind"))
