"""Reading what vLLM's core gives, in the pass in which it arrives.

vLLM's own client reads through pyzmq's asyncio sockets and a queue, which takes several passes of the event loop for a
step. This takes the place of the client's reading task and leaves the rest of the client as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import zmq
from vllm.v1.engine import EngineCoreOutputs
from vllm.v1.engine.core_client import AsyncMPClient, _process_utility_output
from vllm.v1.engine.exceptions import EngineDeadError

# A plain number: pyzmq's own flags are Python objects whose operators are slow.
_READABLE = int(zmq.POLLIN)

OnOutputs = Callable[[EngineCoreOutputs], None]


class OutputReader:
    """Takes the place of a client's reading task, from its making on; to be made in the event loop that it reads in.

    Args:
        client: that has not begun to read.

    Attributes:
        failed: gets the error that ends the reading; EngineDeadError when the core is gone.
    """

    def __init__(self, client: AsyncMPClient) -> None:
        self._client = client
        self._on_outputs: OnOutputs = _drop
        # A client of several cores counts by this what runs at each.
        self._keep_books = getattr(type(client), "process_engine_outputs", None)
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        # The failure may come when nobody waits for it any more.
        self.failed.add_done_callback(_retrieve)
        # Where the client looks for its own reading task, to cancel it and before it starts one.
        client.resources.output_queue_task = self._loop.create_task(self._read_until_cancelled())

    def hand_to(self, on_outputs: OnOutputs) -> None:
        """Give what comes from now on to this function."""
        self._on_outputs = on_outputs

    async def _read_until_cancelled(self) -> None:
        owner = self._client.resources.output_socket
        assert owner is not None
        # The same socket without asyncio's wrapping.
        self._socket: zmq.Socket[bytes] = zmq.Socket.shadow(owner.underlying)
        descriptor = int(self._socket.getsockopt(zmq.FD))
        self._loop.add_reader(descriptor, self._read_all)
        try:
            async with asyncio.TaskGroup() as self._group:
                # The descriptor tells of changes alone, and something may be there already:
                # https://api.zeromq.org/4-3:zmq-getsockopt
                self._read_all()
                await asyncio.wait([self.failed])
        finally:
            self._loop.remove_reader(descriptor)
            self._fail(EngineDeadError())

    def _read_all(self) -> None:
        client = self._client
        try:
            while True:
                if not int(self._socket.getsockopt(zmq.EVENTS)) & _READABLE:
                    return
                frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
                client.resources.validate_alive(frames)
                outputs: EngineCoreOutputs = client.decoder.decode(frames)
                if outputs.utility_output:
                    _process_utility_output(outputs.utility_output, client.utility_results)
                    continue
                if self._keep_books is not None:
                    self._group.create_task(self._keep_books(client, outputs))
                if outputs.outputs or outputs.scheduler_stats:
                    self._on_outputs(outputs)
        except Exception as error:  # noqa: BLE001 - whoever waits for the failure raises it
            self._fail(client._format_exception(error))

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


def _drop(_: EngineCoreOutputs) -> None:
    """Nobody has asked for anything yet."""


def _retrieve(failed: asyncio.Future[None]) -> None:
    if not failed.cancelled():
        failed.exception()
