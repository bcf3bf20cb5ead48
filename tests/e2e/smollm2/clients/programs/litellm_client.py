"""LiteLLM, which takes us for any server of OpenAI's API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

# Else it asks a host of its own for prices at import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from pydantic import BaseModel
from scenarios import BASE_URL, ENDLESS, MAX_TOKENS, MESSAGES, MODEL, PIECES_BEFORE_LEAVING, UNKNOWN, serve, told

# It would print advice between the answers.
litellm.suppress_debug_info = True


class Place(BaseModel):
    """What the model is to give."""

    name: Literal["Paris", "Berlin"]
    is_capital: bool


def _ask(name: str = MODEL, **options: Any) -> Any:
    options = {"max_tokens": MAX_TOKENS, "temperature": 0, **options}
    return litellm.completion(
        model=f"openai/{name}",
        messages=MESSAGES,
        api_base=BASE_URL,
        api_key="none",
        num_retries=0,
        max_retries=0,
        **options,
    )


def chat() -> Mapping[str, Any]:
    """Ask for an answer in one piece."""
    answer = _ask()
    choice = answer.choices[0]
    return {
        "text": choice.message.content,
        "finish_reason": choice.finish_reason,
        "completion_tokens": answer.usage.completion_tokens,
    }


def stream() -> Mapping[str, Any]:
    """Ask for an answer in pieces."""
    chunks = list(_ask(stream=True, stream_options={"include_usage": True}))
    usage = [chunk.usage.completion_tokens for chunk in chunks if getattr(chunk, "usage", None)]
    return {
        "pieces": [choice.delta.content or "" for chunk in chunks for choice in chunk.choices],
        "completion_tokens": usage[-1],
    }


def error() -> Mapping[str, Any]:
    """Ask a model that there is not."""
    try:
        return {"text": str(_ask(UNKNOWN))}
    except litellm.NotFoundError as failure:
        return told(failure)


def leave() -> Mapping[str, Any]:
    """Leave a stream after some pieces."""
    answer = _ask(stream=True, **ENDLESS)
    seen = [next(answer).choices[0].delta.content for _ in range(PIECES_BEFORE_LEAVING)]
    answer.completion_stream.close()
    return {"pieces": seen}


def structured() -> Mapping[str, Any]:
    """Ask for an answer of a shape."""
    text = _ask(response_format=Place).choices[0].message.content
    return {"value": Place.model_validate_json(text).model_dump()}


if __name__ == "__main__":
    serve({"chat": chat, "stream": stream, "error": error, "leave": leave, "structured": structured})
