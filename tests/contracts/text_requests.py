"""Requests that the contract makes of a text service."""

from __future__ import annotations

from typing import Any

from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import text_pb2

TOKENS = 24


def asking(
    words: str = "The quick brown fox jumps", max_tokens: int = TOKENS, **fields: Any
) -> text_pb2.GenerateRequest:
    """A request that is answered with `max_tokens` tokens."""
    params = sampling_pb2.SamplingParams(temperature=0, ignore_eos=True, max_tokens=max_tokens)
    if not {"text", "tokens", "chat"} & fields.keys():
        fields["text"] = text_pb2.TextPrompt(text=words)
    return text_pb2.GenerateRequest(sampling_params=params, **fields)


def endless(**fields: Any) -> text_pb2.GenerateRequest:
    """A request whose answer ends with the context only."""
    request = asking(**fields)
    request.sampling_params.ClearField("max_tokens")
    return request
