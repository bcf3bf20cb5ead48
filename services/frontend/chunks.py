"""Server-sent events of a streamed answer.

They are rendered from bytes made once, around the text alone: 0.3 µs a chunk
instead of 1.1 for a dict. The format:
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from services.frontend.findings import finding_objects
from services.frontend.logprobs import TokenLogprob
from services.frontend.shapes import Answer, Shape, usage_object
from services.frontend.sink import Detail, Finished, Usage
from services.frontend.tool_calls import ToolCallPiece

DONE = b"data: [DONE]\n\n"
# Lines that begin with a colon are comments, which readers pass over.
COMMENT = b": keep-alive\n\n"


def content_of(event: bytes) -> bytes:
    """Return what an event holds: a chunk's JSON."""
    return event[6:-2]


def error_event(error_object: bytes) -> bytes:
    """Return the event that ends a stream with an error."""
    return b"data: %b\n\n" % error_object


class Chunks:
    """Renders one stream's events.

    Args:
        shape: of the endpoint.
        answer: what all chunks have in common.
        choices: number of choices.
        with_usage: chunks carry `usage`, null in all but the last.
    """

    __slots__ = ("_around", "_head", "_shape", "_tail")

    def __init__(self, shape: Shape, answer: Answer, choices: int, *, with_usage: bool) -> None:
        self._shape = shape
        self._head = orjson.dumps(
            {
                "id": answer.id,
                "object": shape.chunk_object_name,
                "created": answer.created,
                "model": answer.model,
            }
        ).removesuffix(b"}")
        self._tail = b',"usage":null}\n\n' if with_usage else b"}\n\n"
        self._around = [self._split(index) for index in range(choices)]

    def opening(self, index: int, usage: Usage | None = None, members: Mapping[str, Any] | None = None) -> bytes:
        """Return the event that begins a choice, or nothing. `members` are more members of the event's object."""
        choice = self._shape.opening(index)
        if choice is None:
            return b""
        event = self._event([choice], usage)
        if not members:
            return event
        # They go before the choices.
        return event.replace(self._head, self._head + b"," + orjson.dumps(members)[1:-1], 1)

    def piece(self, index: int, text: str, usage: Usage | None = None, logprobs: Sequence[TokenLogprob] = ()) -> bytes:
        """Return an event with text; `usage` is what was used so far, if that is asked for."""
        if logprobs:
            return self._event([self._shape.piece(index, text) | {"logprobs": self._shape.logprobs(logprobs)}], usage)
        before, after = self._around[index]
        if usage is None:
            return before + orjson.dumps(text) + after
        return before + orjson.dumps(text) + after.removesuffix(self._tail) + _usage_tail(usage)

    def reasoning_piece(
        self, index: int, reasoning: str, usage: Usage | None = None, logprobs: Sequence[TokenLogprob] = ()
    ) -> bytes:
        """Return an event with reasoning."""
        choice = self._shape.reasoning_piece(index, reasoning)
        if logprobs:
            choice["logprobs"] = self._shape.logprobs(logprobs)
        return self._event([choice], usage)

    def tool_calls_piece(
        self,
        index: int,
        pieces: Sequence[ToolCallPiece],
        usage: Usage | None = None,
        logprobs: Sequence[TokenLogprob] = (),
    ) -> bytes:
        """Return an event with pieces of tool calls."""
        choice = self._shape.tool_calls_piece(index, pieces)
        if logprobs:
            choice["logprobs"] = self._shape.logprobs(logprobs)
        return self._event([choice], usage)

    def findings(self, index: int, detail: Detail, usage: Usage | None = None) -> bytes:
        """Return an event that tells what was found in the text of the events before it."""
        found = finding_objects(detail.filter_matches, detail.format_faults)
        return self._event([self._shape.piece(index, "") | found], usage)

    def closing(self, finished: Finished, usage: Usage | None = None) -> bytes:
        """Return the event that ends a choice."""
        return self._event([self._shape.closing(finished)], usage)

    def usage(self, usage: Usage) -> bytes:
        """Return the event that tells the usage of the whole."""
        return self._event([], usage)

    def _event(self, choices: list[dict[str, Any]], usage: Usage | None) -> bytes:
        tail = self._tail if usage is None else _usage_tail(usage)
        return b'data: %b,"choices":%b%b' % (self._head, orjson.dumps(choices), tail)

    def _split(self, index: int) -> tuple[bytes, bytes]:
        # The text's place is found by a text that occurs nowhere else.
        mark = uuid.uuid4().hex
        rendered = orjson.dumps([self._shape.piece(index, mark)])
        before, after = rendered.split(f'"{mark}"'.encode())
        return b'data: %b,"choices":%b' % (self._head, before), after + self._tail


def _usage_tail(usage: Usage) -> bytes:
    return b',"usage":%b}\n\n' % orjson.dumps(usage_object(usage))
