"""What a frame costs gRPC alone: `python -m tests.performance.bare_link`.

A server writes frames of 64 entries at a steady rate to a client that does nothing with them, each in a process of its
own. The CPU of both, a frame, is the least that a link between two tiers can cost on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import uvloop

from services.chassis.channel import open_channel
from streamomni.engine.v1 import engine_pb2
from tests.e2e.service import free_ports

ENTRIES = 64
SERVICE = "test.v1.BareService"


async def _serve(port: int, frames: int, step_seconds: float) -> None:
    done = asyncio.Event()

    async def write(request_iterator: AsyncIterator[bytes], context: Any) -> None:
        numbers = range(ENTRIES)
        frame = engine_pb2.GenerateManyResponse(stream_ids=numbers, token_counts=[1] * ENTRIES, token_ids=numbers)
        begin = time.process_time()
        for _ in range(frames):
            await asyncio.sleep(step_seconds)
            await context.write(frame)
        _tell("server", begin, frames)
        done.set()

    server = grpc.aio.server()
    serialize = engine_pb2.GenerateManyResponse.SerializeToString
    methods: dict[str, Any] = {"Link": grpc.stream_stream_rpc_method_handler(write, response_serializer=serialize)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await done.wait()
    await server.stop(1.0)


async def _read(port: int) -> None:
    async with open_channel(f"127.0.0.1:{port}") as channel:
        link: Any = channel.stream_stream(
            f"/{SERVICE}/Link", response_deserializer=engine_pb2.GenerateManyResponse.FromString
        )
        call = link(wait_for_ready=True)
        frames, begin = 0, 0.0
        async for _ in call:
            begin = begin or time.process_time()
            frames += 1
        _tell("client", begin, frames)


def _tell(side: str, begin: float, frames: int) -> None:
    cost = (time.process_time() - begin) / frames * 1e6
    print(f"{side}: {cost:.0f} µs of CPU a frame, {cost / ENTRIES:.1f} µs an entry", flush=True)


def main() -> None:
    """Run both sides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400)
    parser.add_argument("--step-seconds", type=float, default=0.02)
    parser.add_argument("--side", choices=("both", "server", "client"), default="both", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side == "server":
        uvloop.run(_serve(arguments.port, arguments.frames, arguments.step_seconds))
    elif arguments.side == "client":
        uvloop.run(_read(arguments.port))
    else:
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "tests.performance.bare_link", f"--port={port}"]
        load = [f"--frames={arguments.frames}", f"--step-seconds={arguments.step_seconds}"]
        sides = [subprocess.Popen([*command, *load, f"--side={side}"]) for side in ("server", "client")]
        exit_codes = [side.wait() for side in sides]
        if any(exit_codes):
            raise SystemExit("a side failed")


if __name__ == "__main__":
    main()
