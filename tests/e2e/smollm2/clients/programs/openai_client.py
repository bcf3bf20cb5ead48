"""OpenAI's own client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai
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

_CLIENT = openai.OpenAI(base_url=BASE_URL, api_key="none", max_retries=0)
_PROXIED = openai.OpenAI(base_url=PROXY_BASE_URL, api_key="none", max_retries=RETRIES)


def _ask(client: openai.OpenAI = _CLIENT, **options: Any) -> Any:
    options = {"model": MODEL, "messages": MESSAGES, "max_tokens": MAX_TOKENS, "temperature": 0, **options}
    return client.chat.completions.create(**options)


def _ask_for_call(client: openai.OpenAI = _CLIENT, **options: Any) -> Any:
    messages = [{"role": "user", "content": TOOL_QUESTION}]
    return _ask(client, messages=messages, tools=[TOOL], parallel_tool_calls=False, **options)


def chat() -> Mapping[str, Any]:
    """Ask for an answer in one piece."""
    answer = _ask()
    (choice,) = answer.choices
    return {
        "text": choice.message.content,
        "finish_reason": choice.finish_reason,
        "completion_tokens": answer.usage.completion_tokens,
    }


def stream() -> Mapping[str, Any]:
    """Ask for an answer in pieces."""
    chunks = list(_ask(stream=True, stream_options={"include_usage": True}))
    return {
        "pieces": [choice.delta.content or "" for chunk in chunks for choice in chunk.choices],
        "completion_tokens": chunks[-1].usage.completion_tokens,
    }


def error() -> Mapping[str, Any]:
    """Ask a model that there is not."""
    try:
        return {"text": str(_ask(model=UNKNOWN))}
    except openai.APIStatusError as failure:
        return told(failure)


def invalid() -> Mapping[str, Any]:
    """Ask for more tokens than fit."""
    try:
        return {"text": str(_ask(max_tokens=TOO_MANY_TOKENS))}
    except openai.APIStatusError as failure:
        return told(failure)


def leave() -> Mapping[str, Any]:
    """Leave a stream after some pieces."""
    with _ask(stream=True, **ENDLESS) as chunks:
        return {"pieces": [next(chunks).choices[0].delta.content for _ in range(PIECES_BEFORE_LEAVING)]}


def structured() -> Mapping[str, Any]:
    """Ask for an answer of a shape."""
    answer = _CLIENT.chat.completions.parse(
        model=MODEL, messages=MESSAGES, response_format=Place, max_tokens=MAX_TOKENS, temperature=0
    )
    place = answer.choices[0].message.parsed
    assert place is not None
    return {"value": place.model_dump()}


def call() -> Mapping[str, Any]:
    """Ask for a call of a tool."""
    (choice,) = _ask_for_call(tool_choice="required").choices
    (made,) = choice.message.tool_calls
    return called(made.function.name, made.function.arguments, finish_reason=choice.finish_reason)


def call_stream() -> Mapping[str, Any]:
    """Ask for a call of a named tool in pieces, and let the client put it together."""
    with _CLIENT.chat.completions.stream(
        model=MODEL,
        messages=[{"role": "user", "content": TOOL_QUESTION}],
        tools=[TOOL],
        tool_choice=NAMED,
        max_tokens=MAX_TOKENS,
        temperature=0,
    ) as events:
        pieces = sum(1 for event in events if event.type == "tool_calls.function.arguments.delta")
        (choice,) = events.get_final_completion().choices
    (made,) = choice.message.tool_calls or []
    return called(made.function.name, made.function.arguments, pieces=pieces, finish_reason=choice.finish_reason)


def round_trip() -> Mapping[str, Any]:
    """Give a call's result back to the model."""
    message = _ask_for_call(_PROXIED, tool_choice="required").choices[0].message
    (made,) = message.tool_calls
    result = {"role": "tool", "tool_call_id": made.id, "content": TOOL_RESULT}
    messages = [{"role": "user", "content": TOOL_QUESTION}, message, result]
    answer = _ask(_PROXIED, messages=messages, tools=[TOOL], tool_choice="none", max_tokens=FEW_TOKENS)
    return called(made.function.name, made.function.arguments, text=answer.choices[0].message.content)


def retry() -> Mapping[str, Any]:
    """Ask with retries allowed."""
    return {"text": _ask(_PROXIED, max_tokens=FEW_TOKENS).choices[0].message.content}


def refused() -> Mapping[str, Any]:
    """Ask in vain with retries allowed."""
    try:
        return {"text": str(_ask(_PROXIED, max_tokens=TOO_MANY_TOKENS))}
    except openai.APIStatusError as failure:
        return told(failure)


if __name__ == "__main__":
    serve(chat, stream, error, invalid, leave, structured, call, call_stream, round_trip, retry, refused)
