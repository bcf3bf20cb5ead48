"""The connections to a server, kept open between requests."""

from __future__ import annotations

import asyncio

from services.cli.bench.connection import Connection, NeverAnswered, RequestFailed, told
from services.cli.bench.target import Target
from services.cli.bench.token_stream import Failure, TokenStream

NO_CONNECTION = "no connection"


class ConnectionPool:
    """All connections to a server.

    Args:
        target: the server.
        path: of the endpoint.
    """

    def __init__(self, target: Target, path: str) -> None:
        self._target = target
        self._head = target.head(path)
        self._idle: list[Connection] = []

    async def open_one(self) -> None:
        """Open a connection for the first request.

        Raises:
            RequestFailed: nothing listens there.
        """
        self._idle.append(await self._connect())

    async def send(self, body: bytes, stream: TokenStream) -> None:
        """Send a request on an idle connection or a new one, and read the answer.

        Raises:
            RequestFailed: the answer is none that counts as good.
        """
        request = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        while (connection := self._take_idle()) is not None:
            try:
                await self._exchange(connection, request, stream)
                return
            except NeverAnswered:
                # The server may close a connection that it found idle while the request was on its way: this says
                # nothing of how it serves, and every client tries again.
                continue
        try:
            await self._exchange(await self._connect(), request, stream)
        except NeverAnswered as error:
            raise RequestFailed(error.failure) from error

    def close(self) -> None:
        """Close all that are idle."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _exchange(self, connection: Connection, request: bytes, stream: TokenStream) -> None:
        try:
            await connection.exchange(request, stream)
        finally:
            if connection.is_open:
                self._idle.append(connection)

    async def _connect(self) -> Connection:
        target = self._target
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                Connection, target.host, target.port, ssl=target.tls
            )
        except OSError as error:
            raise RequestFailed(Failure(NO_CONNECTION, told(error))) from error
        return connection
