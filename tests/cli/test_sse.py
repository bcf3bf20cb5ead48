"""Server-sent events, cut into any pieces."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest

from services.cli.sse import event_texts

STREAM = (
    'event: x\ndata: {"a":"é\u2028b"}\n\n: keep-alive\n\ndata:no space\r\ndata: second\r\n\r\ndata: cut off'.encode()
)


async def texts(chunks: Sequence[bytes]) -> Sequence[str]:
    """The events' texts of a stream that arrives in these pieces."""

    async def arrive() -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk

    return [text async for text in event_texts(arrive())]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_events_are_the_same_for_every_cut(size: int) -> None:
    """Comments, other fields and a cut-off event are passed over; a line separator inside JSON ends no line."""
    chunks = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert await texts(chunks) == ['{"a":"é\u2028b"}', "no space\nsecond"]
