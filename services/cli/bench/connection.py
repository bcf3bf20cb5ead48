"""An HTTP/1.1 connection that streams answers, one after the other."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import cast

import httptools

from services.cli.bench.token_stream import Failure, TokenStream, error_kind

_OK = 200
# Of an answer that is no stream.
_MOST_ERROR_BYTES = 64 * 1024


class RequestFailed(Exception):
    """A request did not come to its good end."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class NeverAnswered(Exception):
    """The connection was closed before the first byte of the answer."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Connection(asyncio.Protocol):
    """One connection. It calls httptools' parser, which calls its `on_…` methods."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._stream: TokenStream | None = None
        self._ended: asyncio.Future[None] | None = None
        self._now = 0.0
        self._status = 0
        self._is_stream = False
        self._content_type = b""
        self._error_body = b""
        self.is_open = False
        """Whether the next request can go out on it."""

    async def exchange(self, request: bytes, stream: TokenStream) -> None:
        """Send a request and feed the answer to the stream, until it ends or wants no more.

        Raises:
            RequestFailed: the answer is none that counts as good.
            NeverAnswered: the server closed the connection without a byte of answer.
        """
        assert self._transport is not None
        self._stream, self._ended = stream, asyncio.get_running_loop().create_future()
        self._status, self._is_stream, self._content_type, self._error_body = 0, False, b"", b""
        self._transport.write(request)
        try:
            await self._ended
        finally:
            if self._stream is not None:
                # Left in the middle.
                self._stream = None
                self.close()

    def close(self) -> None:
        """Close the connection."""
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        # uvloop's transports do what asyncio.Transport says, but are no instances of it.
        self._transport = cast("asyncio.Transport", transport)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        """Stamp what came with the time, and parse it."""
        self._now = perf_counter()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(Failure("malformed HTTP", str(error.__context__ or error)))

    def connection_lost(self, exc: Exception | None) -> None:
        """End what was under way: well, if the answer had no other end and its last event has come."""
        self.is_open = False
        stream = self._stream
        if stream is None:
            return
        if self._is_stream and exc is None:
            self._end_stream(stream, perf_counter())
        elif self._is_stream and stream.done_at is not None:
            self._end(None)
        elif self._status not in (0, _OK) and exc is None:
            self._end(RequestFailed(error_kind(self._status, self._error_body)))
        elif self._status:
            self._end(RequestFailed(Failure("connection broke in the answer", told(exc))))
        else:
            self._end(NeverAnswered(Failure("connection closed without an answer", told(exc))))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the only header that matters."""
        if name.lower() == b"content-type":
            self._content_type = value.lower()

    def on_headers_complete(self) -> None:
        """Decide what the body is."""
        self._status = self._parser.get_status_code()
        self._is_stream = self._status == _OK and self._content_type.startswith(b"text/event-stream")

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        stream = self._stream
        if stream is None:
            return
        if not self._is_stream:
            self._error_body += body[: _MOST_ERROR_BYTES - len(self._error_body)]
        elif stream.feed(body, self._now):
            self._end(RequestFailed(stream.failure) if stream.failure else None)
            self.close()

    def on_message_complete(self) -> None:
        """End the exchange."""
        stream = self._stream
        if stream is None or 100 <= self._status < 200:
            return
        if not self._parser.should_keep_alive():
            self.close()
        if self._is_stream:
            self._end_stream(stream, self._now)
        elif self._status == _OK:
            shown = self._content_type.decode(errors="replace")
            self._end(RequestFailed(Failure("answer is no event stream", f"its content-type is {shown!r}")))
        else:
            self._end(RequestFailed(error_kind(self._status, self._error_body)))

    def _end_stream(self, stream: TokenStream, now: float) -> None:
        stream.end(now)
        self._end(RequestFailed(stream.failure) if stream.failure else None)

    def _fail(self, failure: Failure) -> None:
        self.close()
        self._end(RequestFailed(failure))

    def _end(self, error: Exception | None) -> None:
        ended, self._stream = self._ended, None
        if ended is None or ended.done():
            return
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)


def told(error: Exception | None) -> str:
    """Return what an error of a socket says, in one line; None is an end without one."""
    if error is None:
        return "the server closed it"
    return " ".join(str(error).split()) or type(error).__name__
