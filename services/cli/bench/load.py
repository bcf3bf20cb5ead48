"""Sending the planned requests at their times, and stopping."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Iterator
from time import perf_counter

from services.cli.bench.connection import RequestFailed
from services.cli.bench.connection_pool import NO_CONNECTION, ConnectionPool
from services.cli.bench.options import Options
from services.cli.bench.plan import PlannedRequest
from services.cli.bench.recording import Ending, Outcome, Recorder
from services.cli.bench.token_stream import Failure, TokenStream

# Where nothing listens any more, trying again at once would only heat the machine.
_PAUSE_S = 0.1


class Load:
    """Sends requests.

    Args:
        options: how many at a time, how long, and what each asks for.
        connections: to the server.
    """

    def __init__(self, options: Options, connections: ConnectionPool) -> None:
        self._options = options
        self._connections = connections
        self.interrupted = False
        """Whether the user ended it."""

    async def warm_up(self, requests: Iterable[PlannedRequest]) -> Recorder:
        """Send requests as they are measured later. Returns: what became of them."""
        recorder = Recorder()
        await self._closed_loop(iter(requests), recorder, self._options.concurrency or 1)
        return recorder

    async def run(self, requests: Iterable[PlannedRequest], recorder: Recorder) -> float:
        """Send all requests, or those that fit in the time; the user may end it earlier.

        What is under way when the time is over is cut off. Returns: how long it took, in seconds.
        """
        loop = asyncio.get_running_loop()
        start = perf_counter()
        try:
            async with asyncio.timeout(self._options.duration_s) as limit:
                loop.add_signal_handler(signal.SIGINT, self._interrupt, limit)
                if self._options.concurrency is not None:
                    await self._closed_loop(iter(requests), recorder, self._options.concurrency)
                else:
                    await self._open_loop(requests, recorder, start)
        except TimeoutError:
            pass
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return perf_counter() - start

    def _interrupt(self, limit: asyncio.Timeout) -> None:
        self.interrupted = True
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())

    async def _closed_loop(self, requests: Iterator[PlannedRequest], recorder: Recorder, concurrency: int) -> None:
        """Keep so many under way: each that ends makes room for the next."""

        async def send_each() -> None:
            for request in requests:
                outcome = await self._send(request, recorder)
                if outcome.failure is not None and outcome.failure.kind == NO_CONNECTION:
                    await asyncio.sleep(_PAUSE_S)

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(send_each())

    async def _open_loop(self, requests: Iterable[PlannedRequest], recorder: Recorder, start: float) -> None:
        """Send each at its time, however many are under way."""
        async with asyncio.TaskGroup() as group:
            for request in requests:
                due = start + (request.at_s or 0.0)
                # Even where it is late already: what was sent before must be read, too.
                await asyncio.sleep(max(0.0, due - perf_counter()))
                recorder.lags_s.append(perf_counter() - due)
                group.create_task(self._send(request, recorder))

    async def _send(self, request: PlannedRequest, recorder: Recorder) -> Outcome:
        stream = TokenStream(self._options.choices, request.cancel_after)
        outcome = Outcome(perf_counter(), stream)
        recorder.begin(outcome)
        ending, failure = Ending.UNFINISHED, None
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._connections.send(request.body, stream)
            ending = Ending.CANCELLED if stream.is_cut else Ending.COMPLETED
        except TimeoutError:
            ending, failure = Ending.FAILED, Failure("timeout", f"no end after {self._options.timeout_s:g} s")
        except RequestFailed as error:
            ending, failure = Ending.FAILED, error.failure
        finally:
            recorder.end(outcome, ending, failure)
        return outcome
