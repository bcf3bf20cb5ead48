"""Reading a request's body, within bounds of size, time and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from services.chassis.errors import InvalidRequest, Overloaded, TooLarge
from services.frontend.byte_budget import ByteBudget
from services.frontend.disconnect import ClientGone
from services.frontend.errors import RequestTimeout, UnsupportedMediaType
from services.frontend.strict_json import parse_object

T = TypeVar("T")

# Parsing less than this takes about a millisecond.
_INLINE_BYTES = 256 * 1024


class BodyReader:
    """Reads bodies that are JSON objects.

    Args:
        limit_bytes: largest body.
        budget_bytes: bound on all bodies that are read and parsed at one time.
        timeout: longest pause within a body, in seconds.
    """

    def __init__(self, limit_bytes: int, budget_bytes: int, timeout: float) -> None:
        self._limit_bytes = limit_bytes
        self._timeout = timeout
        self.budget = ByteBudget(budget_bytes)
        # Each thread that parses keeps the interpreter for tens of milliseconds at a time, and those of several add up
        # for the event loop, which must answer health meanwhile.
        self._one_large = asyncio.Semaphore(1)

    async def read(self, scope: Scope, receive: Receive, convert: Callable[[dict[str, Any]], T]) -> T:
        """Read and parse the body of a request and return what `convert` makes of the object.

        A large body is parsed and converted in a thread, one at a time.

        Raises:
            InvalidRequest: it is not a JSON object, or not sent as JSON.
            UnsupportedMediaType: it is compressed.
            TooLarge: it exceeds the limit.
            RequestTimeout: it did not arrive in time.
            Overloaded: other bodies take up the memory meant for them.
            ClientGone: the caller left meanwhile.
        """
        headers = Headers(scope=scope)
        _check_type(headers)
        # uvicorn's parser lets only digits through.
        if int(headers.get("content-length", "0")) > self._limit_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            more = True
            while more:
                chunk, more = await self._receive(receive)
                if len(body) + len(chunk) > self._limit_bytes:
                    raise self._too_large()
                if not self.budget.take(len(chunk)):
                    raise self._no_memory()
                body += chunk
            return await self._parse(bytes(body), convert, "the body")
        finally:
            self.budget.give(len(body))

    async def parse(self, text: bytes, convert: Callable[[dict[str, Any]], T]) -> T:
        """Parse a WebSocket's message, as the body of a request is parsed.

        Raises:
            InvalidRequest: it is not a JSON object.
            TooLarge: it has too many values.
            Overloaded: bodies take up the memory meant for them.
        """
        if not self.budget.take(len(text)):
            raise self._no_memory()
        try:
            return await self._parse(text, convert, "the message")
        finally:
            self.budget.give(len(text))

    async def _parse(self, text: bytes, convert: Callable[[dict[str, Any]], T], subject: str) -> T:
        if len(text) <= _INLINE_BYTES:
            return convert(parse_object(text, subject))
        # The event loop stays free, and so do health checks and other streams.
        async with self._one_large:
            return await asyncio.to_thread(lambda: convert(parse_object(text, subject)))

    async def _receive(self, receive: Receive) -> tuple[bytes, bool]:
        try:
            async with asyncio.timeout(self._timeout):
                message = await receive()
        except TimeoutError:
            raise RequestTimeout(f"the body paused for {self._timeout:g} s; send it without a pause") from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message.get("body", b""), message.get("more_body", False)

    def _no_memory(self) -> Overloaded:
        return Overloaded("other requests' bodies take up the memory for bodies; try again")

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body may have at most {self._limit_bytes} bytes; send less")


def _check_type(headers: Headers) -> None:
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise UnsupportedMediaType("a compressed body is not accepted; send it without content-encoding")
    kind, _, parameters = headers.get("content-type", "").partition(";")
    if kind.strip().lower() != "application/json":
        raise InvalidRequest("content-type must be application/json")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if charset not in ("", "utf-8", "utf8"):
        raise InvalidRequest("the body must be UTF-8; leave charset out of content-type")
