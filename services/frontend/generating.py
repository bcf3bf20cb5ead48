"""The course of a generation that all surfaces share: whole, streamed and resumable answers, WebSockets."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from services.frontend.chat_request import ChatRequest
from services.frontend.chunks import Chunks
from services.frontend.completion_request import CompletionRequest
from services.frontend.generations import start_all
from services.frontend.metrics import FrontendMetrics
from services.frontend.request_context import RequestContext
from services.frontend.running import Running
from services.frontend.sessions.expansion import Expansion, Plan
from services.frontend.sessions.turns import StoredBody, Turns
from services.frontend.shapes import Answer, Shape, new_id
from services.frontend.sink import Sink, TellingSink
from services.frontend.streaming import Outlet, StreamSink, Timing
from services.frontend.tally import Tally
from services.frontend.text_client import TextClient
from services.frontend.wire import CallInfo, WireRequest, generate_requests

Request = ChatRequest | CompletionRequest


@dataclass(frozen=True, slots=True)
class Asked:
    """A valid request, and the same for the wire: one message a prompt.

    Args:
        plan: of the session's turn that it is.
    """

    request: Request
    wire: tuple[WireRequest, ...]
    plan: Plan | None = None

    @property
    def choices(self) -> int:
        """Number of choices of all prompts."""
        return len(self.wire) * self.request.output.choices


@dataclass(frozen=True, slots=True)
class Generating:
    """Makes generations of requests of one endpoint.

    Args:
        parse: makes a valid request from the body.
        shape: the answers' shape.
        turns: of sessions; None where the endpoint has none.
    """

    parse: Callable[[dict[str, Any]], Request]
    shape: Shape
    texts: TextClient
    timing: Timing
    metrics: FrontendMetrics
    turns: Turns | None = None

    def ask(self, body: dict[str, Any], context: RequestContext) -> Asked | StoredBody:
        """Make a valid request from a body, which for a turn of a session needs `with_history`. It touches nothing
        shared, so that it may run in a thread.

        Raises:
            ServiceError: the request is refused.
        """
        if self.turns is not None and body.get("session_id") is not None:
            return StoredBody(body)
        return self._asked(self.parse(body), context)

    async def with_history(self, asked: Asked | StoredBody, context: RequestContext) -> Asked:
        """Return a request that has its whole conversation.

        Raises:
            ServiceError: the request is refused, or there is no such session.
        """
        if isinstance(asked, Asked):
            return asked
        assert self.turns is not None
        return await self.turns.expanded(asked, context.owner, lambda expansion: self._of(expansion, context))

    def _of(self, expansion: Expansion, context: RequestContext) -> Asked:
        request = self.parse(expansion.body)
        if expansion.summary and isinstance(request, ChatRequest):
            request = replace(request, context_summary=expansion.summary)
        return replace(self._asked(request, context), plan=expansion.plan)

    def _asked(self, request: Request, context: RequestContext) -> Asked:
        timeout = self.timing.request_timeout
        deadline_ms = None if timeout is None else round(timeout * 1000)
        call = CallInfo(context.request_id, context.traceparent, deadline_ms, context.caller)
        return Asked(request, generate_requests(request, call))

    def stream_sink(self, asked: Asked, outlet: Outlet) -> StreamSink:
        """Return the sink that renders a generation's events and leaves them at an outlet."""
        answer_id, created = new_id(self.shape.id_prefix), int(time.time())
        choices, delivery = asked.choices, asked.request.delivery

        def chunks(model: str) -> Chunks:
            answer = Answer(answer_id, created, model)
            return Chunks(self.shape, answer, choices, with_usage=delivery.include_usage)

        return StreamSink(chunks, choices, delivery, outlet, len(asked.wire))

    async def begin(self, asked: Asked, sink: TellingSink, context: RequestContext) -> Running:
        """Start the generation of a request, a session's turn once what is new of it is kept.

        Raises:
            Unavailable: it cannot be started.
            ServiceError: see `Turns.begin`.
        """
        if asked.plan is None:
            return self._start(asked, sink)
        assert self.turns is not None
        return await self.turns.begin(asked.plan, sink, lambda recorder: self._start(asked, recorder))

    def _start(self, asked: Asked, sink: Sink) -> Running:
        request = asked.request
        prompt_only = isinstance(request, CompletionRequest) and request.prompt_only
        return start_all(self.texts, asked.wire, sink, choices=request.output.choices, prompt_only=prompt_only)

    def account(self, context: RequestContext, tally: Tally) -> None:
        """Note what a generation has used, once, when it is over."""
        context.usage, context.finish_reasons = tally.usage, tally.finish_reasons
        if context.usage is not None:
            self.metrics.prompt_tokens.inc(context.usage.prompt_tokens)
            self.metrics.completion_tokens.inc(context.usage.completion_tokens)
