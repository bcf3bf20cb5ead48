"""What a scripted generation says: its events, and the messages that carry them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable
from typing import Any

from streamomni.engine.v1 import models_pb2, sampling_pb2
from streamomni.text.v1 import text_pb2

CONTEXT_LENGTH = 4096
PROMPT_TOKENS = 3
"""Of every prompt, whatever it says."""

Event = text_pb2.Started | text_pb2.Delta | text_pb2.Finished
# What a generation does: its events, one frame each, or a ServiceError.
Script = Callable[[text_pb2.GenerateRequest], AsyncGenerator[Event, None]]


def model(
    name: str = "scripted", state: models_pb2.ModelState.ValueType = models_pb2.MODEL_STATE_READY
) -> models_pb2.Model:
    """A model of the scripted service."""
    limits = models_pb2.ModelLimits(context_length=CONTEXT_LENGTH, vocab_size=49152)
    return models_pb2.Model(name=name, state=state, created_unix_s=1_700_000_000, limits=limits)


def started(request: text_pb2.GenerateRequest, prompt_tokens: int = PROMPT_TOKENS) -> text_pb2.Started:
    """The first event of a generation."""
    return text_pb2.Started(prompt_tokens=prompt_tokens, cached_tokens=1, model=request.model)


def finished(
    completion_tokens: int,
    index: int = 0,
    reason: sampling_pb2.FinishReason.ValueType = sampling_pb2.FINISH_REASON_STOP,
    reasoning_tokens: int = 0,
    **matched: Any,
) -> text_pb2.Finished:
    """The last event of a choice."""
    usage = sampling_pb2.Usage(
        prompt_tokens=PROMPT_TOKENS,
        completion_tokens=completion_tokens,
        cached_tokens=1,
        reasoning_tokens=reasoning_tokens,
    )
    return text_pb2.Finished(index=index, reason=reason, usage=usage, **matched)


def prompt_text(request: text_pb2.GenerateRequest) -> str:
    """The text that was asked about: the prompt, or the last message."""
    kind = request.WhichOneof("prompt")
    if kind == "text":
        return request.text.text
    if kind == "tokens":
        return " ".join(str(token_id) for token_id in request.tokens.token_ids)
    last = request.chat.messages[-1]
    return last.text or "".join(part.text for part in last.parts.parts)


def response_of(event: Event) -> text_pb2.GenerateResponse:
    """A message of the public Generate."""
    if isinstance(event, text_pb2.Started):
        return text_pb2.GenerateResponse(started=event)
    if isinstance(event, text_pb2.Delta):
        return text_pb2.GenerateResponse(delta=event)
    return text_pb2.GenerateResponse(finished=event)


def frame_of(stream_id: int, *events: Event) -> text_pb2.GenerateManyResponse:
    """One frame that holds these events of one generation."""
    deltas = [event for event in events if isinstance(event, text_pb2.Delta)]
    indices = [delta.index for delta in deltas]
    frame = text_pb2.GenerateManyResponse(
        stream_ids=[stream_id] * len(deltas),
        indices=indices if any(indices) else (),
        token_counts=[len(delta.token_ids) for delta in deltas],
        token_ids=itertools.chain.from_iterable(delta.token_ids for delta in deltas),
        texts=[delta.text for delta in deltas],
    )
    for entry, delta in enumerate(deltas):
        found = delta.filter_matches or delta.format_faults
        if delta.reasoning or delta.tool_calls or found or delta.HasField("logprobs"):
            logprobs = delta.logprobs if delta.HasField("logprobs") else None
            detail = text_pb2.EntryDetail(
                entry=entry,
                reasoning=delta.reasoning,
                logprobs=logprobs,
                tool_calls=delta.tool_calls,
                filter_matches=delta.filter_matches,
                format_faults=delta.format_faults,
            )
            frame.events.add(stream_id=stream_id, detail=detail)
    for event in events:
        if isinstance(event, text_pb2.Started):
            frame.events.add(stream_id=stream_id, started=event)
        elif isinstance(event, text_pb2.Finished):
            frame.events.add(stream_id=stream_id, finished=event)
    return frame
