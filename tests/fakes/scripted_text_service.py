"""A text service that says what a test tells it to, over real gRPC."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import grpc.aio

from services.chassis.changes import Changes
from services.chassis.errors import DeadlineExceeded, InvalidRequest, NotFound, ServiceError
from services.chassis.grpc_server import grpc_server
from services.chassis.status import status_of
from services.tokenizer.stop_strings import StopStrings
from streamomni.engine.v1 import models_pb2, sampling_pb2
from streamomni.text.v1 import text_pb2, text_pb2_grpc

SERVICE = "streamomni.text.v1.TextService"
CONTEXT_LENGTH = 4096
PROMPT_TOKENS = 3
MAX_CHOICES = 128

Event = text_pb2.Started | text_pb2.Delta | text_pb2.Finished
# What a generation does: its events, one frame each, or a ServiceError.
Script = Callable[[text_pb2.GenerateRequest], AsyncGenerator[Event, None]]


def model(
    name: str = "scripted", state: models_pb2.ModelState.ValueType = models_pb2.MODEL_STATE_READY
) -> models_pb2.Model:
    """A model of the scripted service."""
    limits = models_pb2.ModelLimits(context_length=CONTEXT_LENGTH, vocab_size=49152)
    return models_pb2.Model(name=name, state=state, created_unix_s=1_700_000_000, limits=limits)


def started(request: text_pb2.GenerateRequest, prompt_tokens: int = PROMPT_TOKENS) -> text_pb2.Started:
    """The first event of a generation."""
    return text_pb2.Started(prompt_tokens=prompt_tokens, cached_tokens=1, model=request.model)


def finished(
    completion_tokens: int,
    index: int = 0,
    reason: sampling_pb2.FinishReason.ValueType = sampling_pb2.FINISH_REASON_STOP,
    **matched: Any,
) -> text_pb2.Finished:
    """The last event of a choice."""
    usage = sampling_pb2.Usage(prompt_tokens=PROMPT_TOKENS, completion_tokens=completion_tokens, cached_tokens=1)
    return text_pb2.Finished(index=index, reason=reason, usage=usage, **matched)


def prompt_text(request: text_pb2.GenerateRequest) -> str:
    """The text that was asked about: the prompt, or the last message."""
    kind = request.WhichOneof("prompt")
    if kind == "text":
        return request.text.text
    if kind == "tokens":
        return " ".join(str(token_id) for token_id in request.tokens.token_ids)
    last = request.chat.messages[-1]
    return last.text or "".join(part.text for part in last.parts.parts)


async def echo(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """Say the prompt back, a word a token, in every choice; with ignore_eos again and again."""
    words = [f"{word} " for word in prompt_text(request).split()]
    choices = range(request.n if request.HasField("n") else 1)
    sampling = request.sampling_params
    most = sampling.max_tokens if sampling.HasField("max_tokens") else CONTEXT_LENGTH - PROMPT_TOKENS
    matcher = StopStrings(request.stop).matcher(request.include_stop_str_in_output)
    reason, tokens = sampling_pb2.FINISH_REASON_STOP, 0
    matched: dict[str, Any] = {}
    yield started(request)
    for token_id, word in itertools.cycle(enumerate(words)) if sampling.ignore_eos else enumerate(words):
        stopped = token_id in sampling.stop_token_ids
        result = matcher.feed("" if stopped and not request.include_stop_str_in_output else word)
        for index in choices:
            yield text_pb2.Delta(index=index, token_ids=[token_id], text=result.text)
        tokens += 1
        if stopped or result.match is not None:
            matched = {"stop_string": result.match.stop} if result.match else {"stop_token_id": token_id}
            break
        if tokens == most:
            reason = sampling_pb2.FINISH_REASON_LENGTH
            break
        if tokens >= len(words):
            # What goes on and on does so at the pace of a model.
            await asyncio.sleep(0.001)
    held_back = matcher.flush()
    for index in choices:
        if held_back:
            yield text_pb2.Delta(index=index, text=held_back)
        yield finished(tokens, index, reason, **matched)


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
        return request.model or names[0]

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

        async with asyncio.TaskGroup() as group:
            writing = group.create_task(write())
            async for command in request_iterator:
                kind = command.WhichOneof("command")
                if kind == "start":
                    stream_id, request = command.start.stream_id, command.start.request
                    if (before := live.pop(stream_id, None)) and not before.done():
                        before.cancel()
                        await fail(stream_id, InvalidRequest(f"stream {stream_id} is in use", param="stream_id"))
                    else:
                        live[stream_id] = group.create_task(generate(stream_id, request))
                elif kind == "cancel" and (task := live.pop(command.cancel.stream_id, None)):
                    task.cancel()
            for task in (writing, *live.values()):
                task.cancel()

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

    def serve(self, port: int = 0) -> AbstractAsyncContextManager[int]:
        """Serve until the block is left; yields the port."""
        return _serving(self, port)


@asynccontextmanager
async def _serving(service: ScriptedTextService, port: int) -> AsyncGenerator[int, None]:
    def register(server: grpc.aio.Server) -> None:
        text_pb2_grpc.add_TextServiceServicer_to_server(service, server)

    async with grpc_server("127.0.0.1", port, [SERVICE], register) as (bound_port, health):
        await health.set_serving(True)
        yield bound_port


def response_of(event: Event) -> text_pb2.GenerateResponse:
    """A message of the public Generate."""
    if isinstance(event, text_pb2.Started):
        return text_pb2.GenerateResponse(started=event)
    if isinstance(event, text_pb2.Delta):
        return text_pb2.GenerateResponse(delta=event)
    return text_pb2.GenerateResponse(finished=event)


def frame_of(stream_id: int, *events: Event) -> text_pb2.GenerateManyResponse:
    """One frame that holds these events of one generation."""
    deltas = [event for event in events if isinstance(event, text_pb2.Delta)]
    indices = [delta.index for delta in deltas]
    frame = text_pb2.GenerateManyResponse(
        stream_ids=[stream_id] * len(deltas),
        indices=indices if any(indices) else (),
        token_counts=[len(delta.token_ids) for delta in deltas],
        token_ids=itertools.chain.from_iterable(delta.token_ids for delta in deltas),
        texts=[delta.text for delta in deltas],
    )
    for entry, delta in enumerate(deltas):
        if delta.reasoning or delta.tool_calls or delta.HasField("logprobs"):
            logprobs = delta.logprobs if delta.HasField("logprobs") else None
            detail = text_pb2.EntryDetail(
                entry=entry, reasoning=delta.reasoning, logprobs=logprobs, tool_calls=delta.tool_calls
            )
            frame.events.add(stream_id=stream_id, detail=detail)
    for event in events:
        if isinstance(event, text_pb2.Started):
            frame.events.add(stream_id=stream_id, started=event)
        elif isinstance(event, text_pb2.Finished):
            frame.events.add(stream_id=stream_id, finished=event)
    return frame
