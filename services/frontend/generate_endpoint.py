"""POST /v1/chat/completions and /v1/completions: one course for both."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from services.chassis.drain import Drain
from services.chassis.errors import ServiceError
from services.chassis.mailbox import Mailbox
from services.frontend.body import BodyReader
from services.frontend.collect import CollectSink
from services.frontend.direct_body import WriteNow, write_now_of
from services.frontend.generating import Asked, Generating
from services.frontend.param_names import name_as_sent
from services.frontend.request_context import RequestContext, context_of
from services.frontend.responses import send_body
from services.frontend.resume.resumable import answer_resumably
from services.frontend.resume.streams import Streams
from services.frontend.running import run_generation
from services.frontend.shapes import Answer, new_id
from services.frontend.sink import Usage
from services.frontend.streaming import MAILBOX_BYTES, write_stream


@dataclass(frozen=True, slots=True)
class GenerateEndpoint:
    """An ASGI application that answers generation requests."""

    generating: Generating
    bodies: BodyReader
    drain: Drain
    streams: Streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            ServiceError: it is refused or failed, and nothing was sent.
            ClientGone: the caller left.
        """
        self.drain.enter()
        with ExitStack() as place:
            place.callback(self.drain.leave)
            context = context_of(scope)
            read = await self.bodies.read(scope, receive, lambda body: self.generating.ask(body, context))
            asked = await self.generating.with_history(read, context)
            try:
                if asked.request.delivery.resumable:
                    await answer_resumably(
                        self.generating, self.streams, asked, context, place, receive, send, write_now_of(scope)
                    )
                elif asked.request.delivery.stream:
                    await self._stream(asked, context, receive, send, write_now_of(scope, asked.choices))
                else:
                    await self._answer(asked, context, receive, send)
            except ServiceError as error:
                name_as_sent(error, asked.request)
                raise

    async def _stream(
        self, asked: Asked, context: RequestContext, receive: Receive, send: Send, write_now: WriteNow
    ) -> None:
        mailbox: Mailbox[bytes] = Mailbox(MAILBOX_BYTES, write_now)
        sink = self.generating.stream_sink(asked, mailbox)
        timing = self.generating.timing
        generation = await self.generating.begin(asked, sink, context)
        writing = write_stream(send, sink, mailbox, context, timing)
        with self.generating.metrics.active_streams.track_inprogress():
            try:
                await run_generation(generation, sink, receive, writing, timing.request_timeout)
            finally:
                self.generating.account(context, sink.tally)

    async def _answer(self, asked: Asked, context: RequestContext, receive: Receive, send: Send) -> None:
        sink = CollectSink(asked.choices, len(asked.wire))
        shape, created = self.generating.shape, int(time.time())

        async def deliver() -> None:
            collected = await sink.choices()
            answer = Answer(new_id(shape.id_prefix), created, sink.model)
            await send_body(send, shape.whole(answer, collected, sink.tally.usage or Usage(0, 0), sink.members))

        generation = await self.generating.begin(asked, sink, context)
        try:
            await run_generation(generation, sink, receive, deliver(), self.generating.timing.request_timeout)
        finally:
            self.generating.account(context, sink.tally)
