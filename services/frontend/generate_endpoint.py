"""POST /v1/chat/completions and /v1/completions: one course for both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from services.chassis.drain import Drain
from services.chassis.errors import ServiceError
from services.frontend.body import BodyReader
from services.frontend.chat_request import ChatRequest
from services.frontend.chunks import Chunks
from services.frontend.collect import CollectSink
from services.frontend.completion_request import CompletionRequest
from services.frontend.direct_body import WriteNow, write_now_of
from services.frontend.generations import Generations, start_all
from services.frontend.metrics import FrontendMetrics
from services.frontend.param_names import name_as_sent
from services.frontend.request_context import RequestContext, context_of
from services.frontend.responses import send_body
from services.frontend.running import run_generation
from services.frontend.shapes import Answer, Shape, new_id
from services.frontend.sink import Sink, Usage
from services.frontend.streaming import StreamSink, write_stream
from services.frontend.tally import Tally
from services.frontend.text_client import TextClient
from services.frontend.wire import CallInfo, WireRequest, generate_requests

Request = ChatRequest | CompletionRequest


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds; see the settings of the same names."""

    request_timeout: float | None
    first_byte: float
    comment_interval: float


@dataclass(frozen=True, slots=True)
class _Asked:
    """A valid request, and the same for the wire: one message a prompt."""

    request: Request
    wire: tuple[WireRequest, ...]

    @property
    def choices(self) -> int:
        """Number of choices of all prompts."""
        return len(self.wire) * self.request.output.choices


@dataclass(frozen=True, slots=True)
class GenerateEndpoint:
    """An ASGI application that answers generation requests.

    Args:
        parse: makes a valid request from the body.
        shape: the answers' shape.
    """

    parse: Callable[[dict[str, Any]], Request]
    shape: Shape
    bodies: BodyReader
    texts: TextClient
    drain: Drain
    timing: Timing
    metrics: FrontendMetrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            ServiceError: it is refused or failed, and nothing was sent.
            ClientGone: the caller left.
        """
        self.drain.enter()
        try:
            context = context_of(scope)
            call = self._call_info(context)

            def convert(body: dict[str, Any]) -> _Asked:
                request = self.parse(body)
                return _Asked(request, generate_requests(request, call))

            asked = await self.bodies.read(scope, receive, convert)
            try:
                if asked.request.delivery.stream:
                    await self._stream(asked, context, receive, send, write_now_of(scope))
                else:
                    await self._answer(asked, context, receive, send)
            except ServiceError as error:
                name_as_sent(error, asked.request)
                raise
        finally:
            self.drain.leave()

    async def _stream(
        self, asked: _Asked, context: RequestContext, receive: Receive, send: Send, write_now: WriteNow
    ) -> None:
        answer_id, created = new_id(self.shape.id_prefix), int(time.time())
        choices, delivery = asked.choices, asked.request.delivery

        def chunks(model: str) -> Chunks:
            with_usage = delivery.include_usage
            return Chunks(self.shape, Answer(answer_id, created, model), choices, with_usage=with_usage)

        sink = StreamSink(chunks, choices, delivery, len(asked.wire), write_now)
        generation = self._start(asked, sink)
        writing = write_stream(
            send,
            sink,
            context,
            first_byte=self.timing.first_byte,
            comment_interval=self.timing.comment_interval,
        )
        with self.metrics.active_streams.track_inprogress():
            try:
                await run_generation(generation, sink, receive, writing, self.timing.request_timeout)
            finally:
                self._account(context, sink.tally)

    async def _answer(self, asked: _Asked, context: RequestContext, receive: Receive, send: Send) -> None:
        sink = CollectSink(asked.choices, len(asked.wire))
        created = int(time.time())

        async def deliver() -> None:
            collected = await sink.choices()
            answer = Answer(new_id(self.shape.id_prefix), created, sink.model)
            await send_body(send, self.shape.whole(answer, collected, sink.tally.usage or Usage(0, 0)))

        generation = self._start(asked, sink)
        try:
            await run_generation(generation, sink, receive, deliver(), self.timing.request_timeout)
        finally:
            self._account(context, sink.tally)

    def _start(self, asked: _Asked, sink: Sink) -> Generations:
        request = asked.request
        prompt_only = isinstance(request, CompletionRequest) and request.prompt_only
        return start_all(self.texts, asked.wire, sink, choices=request.output.choices, prompt_only=prompt_only)

    def _call_info(self, context: RequestContext) -> CallInfo:
        timeout = self.timing.request_timeout
        deadline_ms = None if timeout is None else round(timeout * 1000)
        return CallInfo(context.request_id, context.traceparent, deadline_ms)

    def _account(self, context: RequestContext, tally: Tally) -> None:
        context.usage, context.finish_reasons = tally.usage, tally.finish_reasons
        if context.usage is not None:
            self.metrics.prompt_tokens.inc(context.usage.prompt_tokens)
            self.metrics.completion_tokens.inc(context.usage.completion_tokens)
