"""Server-sent events, as a client reads them.

The rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream. httpx splits lines at
U+2028 and others, too, which may stand unescaped in JSON.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator


async def event_texts(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str, None]:
    """Yield the text of each event; comments and other fields are passed over, and so is an event that is cut off."""
    lines: list[str] = []
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in (raw.removesuffix(b"\r").decode(errors="replace") for raw in whole):
            name, _, value = line.partition(":")
            if name == "data":
                lines.append(value.removeprefix(" "))
            elif not line and lines:
                yield "\n".join(lines)
                lines = []
