"""A text service that says what a test tells it to, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import grpc.aio

from services.chassis.changes import Changes
from services.chassis.errors import DeadlineExceeded, InvalidRequest, NotFound, ServiceError
from services.chassis.grpc_server import grpc_server
from services.chassis.status import status_of
from services.chassis.tls import ServerTls
from services.tokenizer.stop_strings import StopStrings
from services.tokenizer.tools_wire import tool_use
from streamomni.engine.v1 import models_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc
from tests.fakes.echo_script import echo
from tests.fakes.text_events import Event, Script, finished, frame_of, model, prompt_text, response_of, started

# With what its scripts are written in.
__all__ = ["SERVICE", "Event", "ScriptedTextService", "echo", "finished", "frame_of", "model", "prompt_text", "started"]

SERVICE = "streamomni.text.v1.TextService"
MAX_CHOICES = 128
MAX_LOGPROBS = 20


class ScriptedTextService(text_pb2_grpc.TextServiceServicer):
    """Implements TextService; each generation runs `script`.

    `requests` are those that were started, `cancelled` the request ids of those
    that their callers or their deadlines cut off, `live` the number of running ones.
    """

    def __init__(self, script: Script = echo) -> None:
        self.script = script
        self.requests: list[text_pb2.GenerateRequest] = []
        self.cancelled: list[str] = []
        self.live = 0
        self.port = 0
        self._models = [model()]
        self._changes = Changes()

    @property
    def models(self) -> list[models_pb2.Model]:
        """The models it offers."""
        return self._models

    @models.setter
    def models(self, models: list[models_pb2.Model]) -> None:
        self._models = models
        self._changes.mark()

    async def run(self, request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        """Run one generation.

        Raises:
            InvalidRequest, NotFound: it is one that the real service refuses.
            DeadlineExceeded: its time is over.
        """
        model_name = self._check(request)
        self.requests.append(request)
        self.live += 1
        end = asyncio.get_running_loop().time() + request.deadline_ms / 1000
        ended = False
        try:
            async with aclosing(self.script(request)) as events:
                while True:
                    # Around each step by itself: a timeout must not hold while this generator waits for its reader.
                    async with asyncio.timeout_at(end if request.HasField("deadline_ms") else None):
                        event = await anext(events, None)
                    if event is None:
                        break
                    if isinstance(event, text_pb2.Started):
                        event.model = model_name
                    yield event
            ended = True
        except TimeoutError:
            raise DeadlineExceeded("the request's time is over; allow more or ask for less") from None
        except ServiceError:
            ended = True
            raise
        finally:
            self.live -= 1
            if not ended:
                self.cancelled.append(request.request_id)

    def _check(self, request: text_pb2.GenerateRequest) -> str:
        """Refuse what no service takes; the name of the model that is asked."""
        names = [model.name for model in self._models]
        if request.model and request.model not in names:
            raise NotFound(f"model {request.model!r} does not exist", param="model", reason="MODEL_NOT_FOUND")
        if request.WhichOneof("prompt") is None:
            raise InvalidRequest("there is no prompt; set one of text, tokens and chat", param="prompt")
        if request.HasField("n") and not 1 <= request.n <= MAX_CHOICES:
            raise InvalidRequest(f"n is {request.n}; allowed are 1 to {MAX_CHOICES}", param="n")
        StopStrings(request.stop)
        tool_use(request.chat)
        self._check_detail(request)
        return request.model or names[0]

    def _check_detail(self, request: text_pb2.GenerateRequest) -> None:
        for name in ("logprobs", "prompt_logprobs"):
            count = getattr(request.sampling_params, name)
            if count > MAX_LOGPROBS:
                raise InvalidRequest(f"{name} is {count}; allowed are 0 to {MAX_LOGPROBS}", param=name)
        is_chat = request.WhichOneof("prompt") == "chat"
        if request.echo and (is_chat or request.text.HasField("suffix")):
            raise InvalidRequest("echo is for prompts without suffix that are no chats; leave it unset", param="echo")

    async def Generate(
        self, request: text_pb2.GenerateRequest, context: Any
    ) -> AsyncIterator[text_pb2.GenerateResponse]:
        """One generation."""
        async with aclosing(self.run(request)) as events:
            async for event in events:
                yield response_of(event)

    async def GenerateMany(  # type: ignore[override]  # writes its frames itself, which grpc.aio allows
        self, request_iterator: AsyncIterator[text_pb2.GenerateManyRequest], context: Any
    ) -> None:
        """The link: a task a generation, a frame an event."""
        await context.send_initial_metadata(())
        live: dict[int, asyncio.Task[None]] = {}
        # Written by one task alone, so that a generation is never cancelled within a write.
        frames = asyncio.Queue[text_pb2.GenerateManyResponse](maxsize=1)

        async def write() -> None:
            while True:
                await context.write(await frames.get())

        async def fail(stream_id: int, error: ServiceError) -> None:
            failed = text_pb2.StreamEvent(stream_id=stream_id, failed=status_of(error))
            await frames.put(text_pb2.GenerateManyResponse(events=[failed]))

        async def generate(stream_id: int, request: text_pb2.GenerateRequest) -> None:
            try:
                async with aclosing(self.run(request)) as events:
                    async for event in events:
                        await frames.put(frame_of(stream_id, event))
            except ServiceError as error:
                await fail(stream_id, error)

        refusal: InvalidRequest | None = None
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(write())
            async for command in _each(request_iterator):
                kind = command.WhichOneof("command")
                if kind == "start":
                    stream_id, request = command.start.stream_id, command.start.request
                    if (before := live.pop(stream_id, None)) and not before.done():
                        before.cancel()
                        await fail(stream_id, InvalidRequest(f"stream {stream_id} is in use", param="stream_id"))
                    else:
                        live[stream_id] = group.create_task(generate(stream_id, request))
                elif kind == "cancel":
                    if task := live.pop(command.cancel.stream_id, None):
                        task.cancel()
                else:
                    refusal = InvalidRequest("a command holds neither start nor cancel", param="command")
                    break
            for task in (writing, *live.values()):
                task.cancel()
        if refusal is not None:
            raise refusal

    async def ListModels(self, request: Any, context: Any) -> text_pb2.ListModelsResponse:
        """The models."""
        return text_pb2.ListModelsResponse(models=self._models)

    async def WatchModels(self, request: Any, context: Any) -> AsyncIterator[text_pb2.WatchModelsResponse]:
        """The models, now and at each change."""
        async with aclosing(self._changes.each()) as changes:
            async for _ in changes:
                yield text_pb2.WatchModelsResponse(models=self._models)

    async def Tokenize(self, request: text_pb2.TokenizeRequest, context: Any) -> text_pb2.TokenizeResponse:
        """Token ids: the bytes of the text."""
        return text_pb2.TokenizeResponse(token_ids=request.text.encode())

    async def Detokenize(self, request: text_pb2.DetokenizeRequest, context: Any) -> text_pb2.DetokenizeResponse:
        """Text of token ids that are bytes."""
        return text_pb2.DetokenizeResponse(text=bytes(request.token_ids).decode(errors="replace"))

    async def RenderChat(self, request: text_pb2.RenderChatRequest, context: Any) -> text_pb2.RenderChatResponse:
        """The prompt: a line for each message."""
        text = "".join(f"{message.role}: {message.text}\n" for message in request.chat.messages)
        return text_pb2.RenderChatResponse(text=text, token_ids=text.encode())

    def serve(self, port: int = 0, tls: ServerTls | None = None) -> AbstractAsyncContextManager[int]:
        """Serve until the block is left; yields the port."""
        return _serving(self, port, tls)


async def _each(
    messages: AsyncIterator[text_pb2.GenerateManyRequest],
) -> AsyncIterator[text_pb2.GenerateManyRequest]:
    """Each command by itself."""
    async for message in messages:
        for command in message.batch or [message]:
            yield command


@asynccontextmanager
async def _serving(service: ScriptedTextService, port: int, tls: ServerTls | None) -> AsyncGenerator[int, None]:
    def register(server: grpc.aio.Server) -> None:
        text_pb2_grpc.add_TextServiceServicer_to_server(service, server)

    async with grpc_server("127.0.0.1", port, [SERVICE], register, tls) as (bound_port, health):
        await health.set_serving(True)
        yield bound_port
