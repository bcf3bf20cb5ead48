"""One generation over a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import aclosing

import structlog
from starlette.types import Send

from services.chassis.errors import DeadlineExceeded, InternalError, ServiceError
from services.chassis.mailbox import Mailbox
from services.frontend.chunks import DONE
from services.frontend.direct_body import WriteNow
from services.frontend.errors import StreamCancelled
from services.frontend.generating import Asked
from services.frontend.param_names import name_as_sent
from services.frontend.resume.streams import Streams
from services.frontend.running import Running
from services.frontend.streaming import MAILBOX_BYTES
from services.frontend.websocket.messages import Envelope, Start

log = structlog.get_logger(__name__)


class SocketGeneration:
    """Sends a generation's events, until it ends, is cancelled, or nobody reads what it sends.

    Args:
        start: began it.
        asked: its request.
        streams: lets it be cancelled over HTTP.
    """

    def __init__(self, start: Start, asked: Asked, streams: Streams, send: Send, write_now: WriteNow) -> None:
        self._asked = asked
        self._generating, self._context = start.generating, start.context
        self._streams = streams
        self._send = send
        self._envelope = Envelope(start.id, write_now)
        self._mailbox: Mailbox[bytes] = Mailbox(MAILBOX_BYTES, self._envelope.write_now)
        self._sink = self._generating.stream_sink(self._asked, self._mailbox)
        self._running: Running | None = None

    def cancel(self) -> bool:
        """End the generation; its client is told so, after what was generated. Returns False if it is over."""
        if self._sink.tally.complete:
            return False
        if self._running is not None:
            self._running.cancel()
        self._mailbox.close(StreamCancelled("the generation was cancelled on request"))
        return True

    async def run(self, on_end: Callable[[], object]) -> None:
        """Start it and send its events. How it ends is its last message.

        Args:
            on_end: is called when it is over, before its client is told.
        """
        structlog.contextvars.bind_contextvars(request_id=self._context.request_id)
        try:
            last = await self._send_events()
        except OSError:
            # The socket is lost, as whoever reads it notices too.
            last = None
            self._context.error = "CLIENT_GONE"
        finally:
            on_end()
            self._log()
        if last is not None:
            with contextlib.suppress(OSError):
                await self._tell(last)

    async def _send_events(self) -> bytes:
        """Send all events but the last message, which is returned."""
        timeout = self._generating.timing.request_timeout
        try:
            with self._streams.cancellable(self._context.owner, self.cancel) as stream_id:
                await self._tell(self._envelope.started(stream_id))
                async with asyncio.timeout(timeout):
                    await self._generate()
        except TimeoutError:
            told = f"the answer took more than the {timeout:g} s that are allowed; ask for fewer tokens"
            return self._failed(DeadlineExceeded(told))
        except StreamCancelled as error:
            self._context.error = error.reason
            return self._envelope.cancelled()
        except ServiceError as error:
            name_as_sent(error, self._asked.request)
            return self._failed(error)
        except OSError:
            raise
        except Exception:
            log.exception("generation failed")
            return self._failed(InternalError())
        return self._envelope.done

    async def _generate(self) -> None:
        self._running = await self._generating.begin(self._asked, self._sink, self._context)
        try:
            async with aclosing(self._mailbox.batches()) as batches:
                async for batch in batches:
                    for event in batch:
                        if event is not DONE:
                            await self._tell(self._envelope.event(event))
        finally:
            self._running.cancel()
            self._generating.account(self._context, self._sink.tally)

    def _failed(self, error: ServiceError) -> bytes:
        self._context.error = error.reason
        return self._envelope.error(error, self._context.request_id)

    async def _tell(self, text: bytes) -> None:
        await self._send({"type": "websocket.send", "text": text.decode()})

    def _log(self) -> None:
        context = self._context
        usage = context.usage
        log.info(
            "generation over a WebSocket",
            duration_ms=round(context.elapsed * 1000, 1),
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            finish_reason=",".join(sorted(set(context.finish_reasons))) or None,
            error=context.error,
        )
