"""LiteLLM, which takes us for any server of OpenAI's API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

# Else it asks a host of its own for prices at import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from scenarios import (
    BASE_URL,
    ENDLESS,
    FEW_TOKENS,
    MAX_TOKENS,
    MESSAGES,
    MODEL,
    NAMED,
    PIECES_BEFORE_LEAVING,
    PROXY_BASE_URL,
    RETRIES,
    TOO_MANY_TOKENS,
    TOOL,
    TOOL_QUESTION,
    TOOL_RESULT,
    UNKNOWN,
    Place,
    called,
    serve,
    told,
)

# It would print advice between the answers.
litellm.suppress_debug_info = True


def _ask(name: str = MODEL, **options: Any) -> Any:
    options = {
        "messages": MESSAGES,
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "api_base": BASE_URL,
        "max_retries": 0,
        **options,
    }
    return litellm.completion(model=f"openai/{name}", api_key="none", **options)


def _ask_for_call(**options: Any) -> Any:
    messages = [{"role": "user", "content": TOOL_QUESTION}]
    return _ask(messages=messages, tools=[TOOL], parallel_tool_calls=False, **options)


def _proxied() -> dict[str, Any]:
    return {"api_base": PROXY_BASE_URL, "max_retries": RETRIES}


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


def invalid() -> Mapping[str, Any]:
    """Ask for more tokens than fit."""
    try:
        return {"text": str(_ask(max_tokens=TOO_MANY_TOKENS))}
    except litellm.BadRequestError as failure:
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


def call() -> Mapping[str, Any]:
    """Ask for a call of a tool."""
    (choice,) = _ask_for_call(tool_choice="required").choices
    (made,) = choice.message.tool_calls
    return called(made.function.name, made.function.arguments, finish_reason=choice.finish_reason)


def call_stream() -> Mapping[str, Any]:
    """Ask for a call of a named tool in pieces, and let the client put it together."""
    chunks = list(_ask_for_call(tool_choice=NAMED, stream=True))
    pieces = sum(1 for chunk in chunks if chunk.choices[0].delta.tool_calls)
    whole: Any = litellm.stream_chunk_builder(chunks)
    (choice,) = whole.choices
    (made,) = choice.message.tool_calls
    return called(made.function.name, made.function.arguments, pieces=pieces, finish_reason=choice.finish_reason)


def round_trip() -> Mapping[str, Any]:
    """Give a call's result back to the model."""
    message = _ask_for_call(tool_choice="required", **_proxied()).choices[0].message
    (made,) = message.tool_calls
    result = {"role": "tool", "tool_call_id": made.id, "content": TOOL_RESULT}
    messages = [{"role": "user", "content": TOOL_QUESTION}, message, result]
    answer = _ask(messages=messages, tools=[TOOL], tool_choice="none", **{**_proxied(), "max_tokens": FEW_TOKENS})
    return called(made.function.name, made.function.arguments, text=answer.choices[0].message.content)


def retry() -> Mapping[str, Any]:
    """Ask with retries allowed."""
    return {"text": _ask(max_tokens=FEW_TOKENS, **_proxied()).choices[0].message.content}


def refused() -> Mapping[str, Any]:
    """Ask in vain with retries allowed."""
    try:
        return {"text": str(_ask(max_tokens=TOO_MANY_TOKENS, **_proxied()))}
    except litellm.BadRequestError as failure:
        return told(failure)


if __name__ == "__main__":
    serve(chat, stream, error, invalid, leave, structured, call, call_stream, round_trip, retry, refused)
