"""An answer as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Send

from services.chassis.errors import InternalError, ServiceError, Unavailable
from services.chassis.mailbox import Mailbox
from services.frontend.chunks import COMMENT, DONE, Chunks, error_event
from services.frontend.context_policy import context_object
from services.frontend.disconnect import ClientGone
from services.frontend.errors import error_object
from services.frontend.logprobs import TokenLogprob, moved
from services.frontend.params import Delivery
from services.frontend.request_context import RequestContext
from services.frontend.sink import Detail, Finished, Started
from services.frontend.tally import Tally

# What may wait for one slow reader.
MAILBOX_BYTES = 256 * 1024

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    # Keeps nginx from gathering the stream.
    (b"x-accel-buffering", b"no"),
]


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds; see the settings of the same names."""

    request_timeout: float | None
    first_byte: float
    comment_interval: float


class Outlet(Protocol):
    """Where a stream's events are left, as at a `Mailbox`."""

    def put(self, item: bytes, size_bytes: int) -> bool:
        """Take an event. Returns False when its reader is too slow: it was not taken."""

    def close(self, error: Exception | None = None) -> None:
        """End the stream after what was put, with `error` if there is one. What comes later is left out."""


class StreamSink:
    """Renders a generation's events and leaves the bytes for the writer.

    Args:
        chunks: makes the renderer, once the name of the answering model is known.
        choices: number of choices of all prompts.
        delivery: which chunks carry the usage.
        outlet: takes the events.
        prompts: number of prompts.

    Attributes:
        members: of the first event's object, beside OpenAI's.
    """

    __slots__ = (
        "_begun",
        "_chunks",
        "_continuous_usage",
        "_delivery",
        "_full",
        "_last_put",
        "_make_chunks",
        "_next_comment",
        "_outlet",
        "_per_prompt",
        "_prompt_characters",
        "_time",
        "members",
        "tally",
    )

    def __init__(
        self,
        chunks: Callable[[str], Chunks],
        choices: int,
        delivery: Delivery,
        outlet: Outlet,
        prompts: int = 1,
    ) -> None:
        self._make_chunks = chunks
        self._per_prompt = choices // prompts
        # Of the echoed prompt, by choice.
        self._prompt_characters = [0] * choices
        self._delivery = delivery
        self._continuous_usage = delivery.continuous_usage_stats
        self._time = asyncio.get_running_loop().time
        self._last_put = self._time()
        self._begun = False
        self._next_comment: asyncio.TimerHandle | None = None
        self._full = False
        self._outlet = outlet
        self.members: dict[str, Any] = {}
        self.tally = Tally(choices, prompts)

    def started(self, started: Started) -> None:
        """Begin the choices of one prompt, with the prompt where it is echoed."""
        if not self.tally.begun:
            self._chunks = self._make_chunks(started.model)
        self.tally.start(started)
        usage = self.tally.usage if self._continuous_usage else None
        if started.context is not None:
            self.members["context"] = context_object(started.context)
        text, logprobs = started.prompt_text, started.prompt_logprobs
        for index in range(started.first_choice, started.first_choice + self._per_prompt):
            self._prompt_characters[index] = len(text)
            self._put(self._chunks.opening(index, usage, self.members if index == 0 else None))
            if text or logprobs:
                # It may fill the mailbox by itself before its reader had a chance. The context bounds it.
                self._put(self._chunks.piece(index, text, usage, logprobs), size_bytes=0)

    def delta(self, index: int, token_ids: Sequence[int], text: str, detail: Detail | None) -> bool:
        """Render a piece of a choice. Tokens whose text is held back give no event, unless it tells of them."""
        self.tally.add(len(token_ids))
        if detail is None and not self._continuous_usage:
            # Nearly all of them.
            if text:
                event = self._chunks.piece(index, text)
                self._begun = True
                self._last_put = self._time()
                if not self._outlet.put(event, len(event)):
                    self._end_full()
            return not self._full
        usage = self.tally.usage if self._continuous_usage else None
        logprobs: Sequence[TokenLogprob] = ()
        if detail is not None and detail.logprobs:
            characters = self._prompt_characters[index]
            logprobs = moved(detail.logprobs, characters) if characters else detail.logprobs
        if detail is not None and detail.reasoning:
            self._put(self._chunks.reasoning_piece(index, detail.reasoning, usage, () if text else logprobs))
            logprobs = logprobs if text else ()
        pieces = detail.tool_calls if detail is not None else ()
        if text or (logprobs and not pieces):
            self._put(self._chunks.piece(index, text, usage, logprobs))
            logprobs = ()
        if pieces:
            self._put(self._chunks.tool_calls_piece(index, pieces, usage, logprobs))
        if detail is not None and (detail.filter_matches or detail.format_faults):
            self._put(self._chunks.findings(index, detail, usage))
        return not self._full

    def finished(self, finished: Finished) -> None:
        """End a choice, and with the last one the stream."""
        self.tally.end(finished)
        usage = self.tally.usage
        self._put(self._chunks.closing(finished, usage if self._continuous_usage else None))
        if self.tally.complete:
            if self._delivery.include_usage and usage is not None:
                self._put(self._chunks.usage(usage))
            self._put(DONE)
            self._outlet.close()

    def failed(self, error: Exception) -> None:
        """End the stream with an error."""
        self._outlet.close(error)

    def begin_comments(self, first: float, interval: float) -> None:
        """Put a comment whenever nothing came for `interval` seconds, `first` before there was anything."""
        allowed = interval if self._begun else first
        left = self._last_put + allowed - self._time()
        if left <= 0:
            self._put(COMMENT)
            left = interval
        self._next_comment = asyncio.get_running_loop().call_later(left, self.begin_comments, first, interval)

    def end_comments(self) -> None:
        """Put no more comments."""
        if self._next_comment is not None:
            self._next_comment.cancel()

    def _put(self, event: bytes, size_bytes: int | None = None) -> None:
        if not event:
            return
        self._begun = True
        self._last_put = self._time()
        if not self._outlet.put(event, len(event) if size_bytes is None else size_bytes):
            self._end_full()

    def _end_full(self) -> None:
        self._full = True
        self._outlet.close(
            Unavailable("the answer was not read as fast as it came; read it faster", reason="SLOW_READER")
        )


async def write_stream(
    send: Send, sink: StreamSink, mailbox: Mailbox[bytes], context: RequestContext, timing: Timing
) -> None:
    """Send what the sink leaves in the mailbox until its end.

    The status is decided by the first thing that comes, so that a refusal of the
    tiers behind is an error response. When nothing comes for `first_byte` seconds,
    the stream begins with a comment, lest a proxy gives up on it.

    Raises:
        ServiceError: the generation failed before the first byte.
        ClientGone: the caller left.
        Exception: a fault. The caller has been told with an event of fixed text, where the stream had begun.
    """
    began = False
    sink.begin_comments(timing.first_byte, timing.comment_interval)
    try:
        async with aclosing(mailbox.batches()) as batches:
            async for batch in batches:
                if not began:
                    await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
                    began = True
                await send({"type": "http.response.body", "body": b"".join(batch), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except ServiceError as error:
        if not began:
            raise
        context.error = error.reason
        await send({"type": "http.response.body", "body": error_event(error_object(error))})
    except ClientGone:
        raise
    except Exception:
        if began:
            await send({"type": "http.response.body", "body": error_event(error_object(InternalError()))})
        raise
    finally:
        sink.end_comments()
