"""A server that only writes: what a chunk costs at the least in Python, to which the tiers' cost is held.

`python -m tests.performance.reference_server PORT STEP_SECONDS`: each stream gets a chunk of always the same bytes a
step, by uvicorn's own `send`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

_CHUNK = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'


def app(step_seconds: float) -> Any:
    """The ASGI application."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", scope["type"] == "http"
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if scope["path"] == "/v1/models":
            await _start(send, b"application/json")
            await send({"type": "http.response.body", "body": b'{"data": [{"id": "reference"}]}'})
            return
        await _start(send, b"text/event-stream")
        tokens = json.loads(body)["max_tokens"]
        for _ in range(tokens):
            await send({"type": "http.response.body", "body": _CHUNK, "more_body": True})
            await asyncio.sleep(step_seconds)
        usage = b'data: {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": %d}}\n\n' % tokens
        await send({"type": "http.response.body", "body": usage + b"data: [DONE]\n\n"})

    return serve


async def _start(send: Send, content_type: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", content_type)]})


if __name__ == "__main__":
    uvicorn.run(app(float(sys.argv[2])), port=int(sys.argv[1]), access_log=False, log_level="warning", lifespan="off")
