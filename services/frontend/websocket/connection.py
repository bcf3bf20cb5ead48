"""One WebSocket: several generations beside each other, each under an id that the client chose."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog
from starlette.types import Receive, Send

from services.chassis.drain import Drain
from services.chassis.errors import InternalError, InvalidRequest, RateLimited, ServiceError, Unauthenticated
from services.frontend.body import BodyReader
from services.frontend.direct_body import WriteNow
from services.frontend.generating import Generating
from services.frontend.metrics import FrontendMetrics
from services.frontend.request_context import RequestContext
from services.frontend.resume.streams import Streams
from services.frontend.websocket.generation import SocketGeneration
from services.frontend.websocket.handshake import short
from services.frontend.websocket.messages import (
    PONG,
    Cancel,
    Command,
    Ping,
    Start,
    error_message,
    parse_command,
    with_history,
)

log = structlog.get_logger(__name__)

PATH = "/v1/stream"
MAX_GENERATIONS = 64


@dataclass(frozen=True, slots=True)
class Services:
    """What all WebSockets stand on.

    Args:
        endpoints: by the names that messages give them.
    """

    endpoints: Mapping[str, Generating]
    bodies: BodyReader
    drain: Drain
    streams: Streams
    metrics: FrontendMetrics


class Connection:
    """Serves the messages of an open WebSocket.

    Args:
        context: of the handshake. Each generation gets a request id of its own.
        check_key: raises `Unauthenticated` once the key that the socket was opened with is not accepted any more.
    """

    def __init__(
        self,
        services: Services,
        send: Send,
        write_now: WriteNow,
        context: RequestContext,
        check_key: Callable[[], object],
    ) -> None:
        self._services = services
        self._send = send
        self._write_now = write_now
        self._context = context
        self._check_key = check_key
        # Those whose end their client was not told yet, and the tasks of all, some of which still tell it.
        self._live: dict[str, SocketGeneration] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, receive: Receive) -> None:
        """Serve until the client leaves or is shown out. What still runs is then cancelled."""
        async with asyncio.TaskGroup() as group:
            try:
                await self._take_messages(receive, group)
            except OSError:
                log.debug("WebSocket lost while a message was sent")
            finally:
                self._services.metrics.cancelled.labels(PATH).inc(len(self._live))
                for task in self._tasks:
                    task.cancel()

    async def _take_messages(self, receive: Receive, group: asyncio.TaskGroup) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            try:
                await self._obey(await self._parse(message.get("text")), group)
            except Unauthenticated as error:
                await self._send({"type": "websocket.close", "code": 1008, "reason": short(error.message)})
                return
            except ServiceError as error:
                await self._tell(error_message(error, self._context.request_id))
            except OSError:
                raise
            except Exception:
                log.exception("message failed")
                await self._tell(error_message(InternalError(), self._context.request_id))

    async def _parse(self, text: str | None) -> Command:
        if text is None:
            raise InvalidRequest("a message must be text, a JSON object; this one is binary")
        opened = self._context
        context = RequestContext(f"req-{uuid.uuid4().hex}", opened.traceparent, opened.owner, opened.caller)
        endpoints = self._services.endpoints
        return await self._services.bodies.parse(
            text.encode(), lambda message: parse_command(message, endpoints, context)
        )

    async def _obey(self, command: Command, group: asyncio.TaskGroup) -> None:
        match command:
            case Ping():
                await self._tell(PONG)
            case Cancel(id=generation_id):
                if generation_id not in self._live:
                    raise InvalidRequest(
                        "no generation of this id is under way; it may have ended", param="id", reason="UNKNOWN_ID"
                    )
                self._live[generation_id].cancel()
            case Start():
                if command.id in self._live:
                    raise InvalidRequest(
                        "a generation of this id is under way; choose another id", param="id", reason="DUPLICATE_ID"
                    )
                await self._start(command, group)

    async def _start(self, start: Start, group: asyncio.TaskGroup) -> None:
        self._check_key()
        try:
            asked = await with_history(start)
            if len(self._tasks) >= MAX_GENERATIONS:
                raise RateLimited(
                    f"a WebSocket may have {MAX_GENERATIONS} generations under way; wait for one to end",
                    reason="TOO_MANY_GENERATIONS",
                )
            self._services.drain.enter()
        except ServiceError as error:
            log.info("generation refused", request_id=start.context.request_id, error=error.reason)
            await self._tell(error_message(error, start.context.request_id, start.id))
            return
        generation = SocketGeneration(start, asked, self._services.streams, self._send, self._write_now)
        self._live[start.id] = generation
        task = group.create_task(generation.run(lambda: self._live.pop(start.id, None)))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._services.drain.leave()

    async def _tell(self, text: bytes) -> None:
        await self._send({"type": "websocket.send", "text": text.decode()})
