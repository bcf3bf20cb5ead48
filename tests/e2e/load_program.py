"""A program that keeps a service busy: `streams` or `bodies`. It says READY when the load is on.

It is a process of its own, so that who measures meanwhile measures the service and not this load.
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import urlsplit

STREAMS = 64
READY = "ready"
# 19 MB as JSON.
_WORDS = "word\n" * 3_100_000


async def _answer(url: str, path: str, body: bytes, begun: asyncio.Event | None = None) -> int:
    """Send a request, read its answer to the end, and return the status."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = b""
    while piece := await reader.read(1 << 16):
        answer = answer or piece
        if begun is not None:
            begun.set()
    writer.close()
    return int(answer.split(b" ", 2)[1])


async def _streams(url: str, model: str) -> None:
    """64 streams, each begun anew when it ends."""
    begun = [asyncio.Event() for _ in range(STREAMS)]

    async def repeat(number: int) -> None:
        fields = {"prompt": [1, 100 + number], "max_tokens": 400, "ignore_eos": True, "stream": True}
        body = json.dumps({"model": model, **fields}).encode()
        while True:
            assert await _answer(url, "/v1/completions", body, begun[number]) == 200

    async with asyncio.TaskGroup() as group:
        for number in range(STREAMS):
            group.create_task(repeat(number))
        for event in begun:
            await event.wait()
        print(READY, flush=True)


async def _bodies(url: str, model: str) -> None:
    """27 MB, which is too much, and with it three bodies of up to 19 MB, read and refused for their length."""
    chat = json.dumps({"model": model, "messages": [{"role": "user", "content": _WORDS}]}).encode()
    ids = json.dumps({"model": model, "prompt": [7] * 1_900_000}).encode()
    objects = {"model": model, "prompt": [1] * 9000, "metadata": {"list": [{"a": 1}] * 90_000}}
    bodies = [
        ("/v1/chat/completions", b'{"messages": "' + b"x" * 27_000_000 + b'"}', 413),
        ("/v1/chat/completions", chat, 400),
        ("/v1/completions", ids, 400),
        ("/v1/completions", json.dumps(objects).encode(), 400),
    ]
    print(READY, flush=True)
    statuses = await asyncio.gather(*(_answer(url, path, body) for path, body, _ in bodies))
    assert statuses == [status for _, _, status in bodies], statuses


if __name__ == "__main__":
    kind, base_url, model_name = sys.argv[1:]
    asyncio.run({"streams": _streams, "bodies": _bodies}[kind](base_url, model_name))
