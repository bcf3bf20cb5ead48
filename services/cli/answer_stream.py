"""A streamed answer of `/v1/chat/completions`, piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx

from services.cli.service_failure import ServiceFailure, broken_stream, json_object, request_mark
from services.cli.sse import event_texts


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer, or what one event tells beside its text.

    Args:
        text: what comes next.
        finish_reason: given once, with the choice's last piece.
        reasoning: what the model thinks next before it answers.
        session: the session's and the stored messages' ids, once, where the service keeps the conversation.
        context: what was dropped to fit the context, once, if anything was.
        filter_matches: what an output filter found; the choice's last piece holds all of them again.
        format_faults: what a format check found, in the same way.
        usage: token counts, once, near the end.
    """

    text: str
    finish_reason: str | None = None
    reasoning: str = ""
    session: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    filter_matches: Sequence[Mapping[str, Any]] = ()
    format_faults: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, Any] | None = None


async def pieces_of(response: httpx.Response) -> AsyncGenerator[Piece, None]:
    """Yield the pieces of a response that streams one choice.

    Raises:
        ServiceFailure: the stream holds an error or no JSON, or broke off.
    """
    async with aclosing(event_texts(response.aiter_bytes())) as events:
        async for event in events:
            if event == "[DONE]":
                return
            content = json_object(event)
            if not content:
                raise ServiceFailure(f"the service sent an event that is no JSON object{request_mark(response)}")
            if "error" in content:
                raise broken_stream(response, content)
            yield _piece(content)
    raise ServiceFailure(f"the answer broke off{request_mark(response)}")


def _piece(content: Mapping[str, Any]) -> Piece:
    choices = content.get("choices") or [{}]
    choice = choices[0]
    delta = choice.get("delta") or {}
    return Piece(
        delta.get("content") or "",
        choice.get("finish_reason"),
        # Both spellings are in use.
        delta.get("reasoning") or delta.get("reasoning_content") or "",
        content.get("session"),
        content.get("context"),
        choice.get("filter_matches") or (),
        choice.get("format_faults") or (),
        content.get("usage"),
    )
