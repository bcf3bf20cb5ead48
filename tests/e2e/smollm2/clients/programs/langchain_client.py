"""LangChain's client of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import openai
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from scenarios import (
    BASE_URL,
    ENDLESS,
    FEW_TOKENS,
    MAX_TOKENS,
    MODEL,
    PIECES_BEFORE_LEAVING,
    PROXY_BASE_URL,
    QUESTION,
    RETRIES,
    TOO_MANY_TOKENS,
    TOOL,
    TOOL_NAME,
    TOOL_QUESTION,
    TOOL_RESULT,
    UNKNOWN,
    Place,
    called,
    serve,
    told,
)


def _model(name: str = MODEL, **options: Any) -> ChatOpenAI:
    options = {"base_url": BASE_URL, "temperature": 0, "max_tokens": MAX_TOKENS, "max_retries": 0, **options}
    return ChatOpenAI(model=name, api_key=SecretStr("none"), stream_usage=True, **options)


def _proxied(**options: Any) -> ChatOpenAI:
    return _model(base_url=PROXY_BASE_URL, max_retries=RETRIES, **options)


def _called(message: AIMessage, **more: Any) -> Mapping[str, Any]:
    (made,) = message.tool_calls
    return called(made["name"], made["args"], finish_reason=message.response_metadata["finish_reason"], **more)


def chat() -> Mapping[str, Any]:
    """Ask for an answer in one piece."""
    message = _model().invoke(QUESTION)
    return {
        "text": message.content,
        "finish_reason": message.response_metadata["finish_reason"],
        "completion_tokens": message.usage_metadata["output_tokens"] if message.usage_metadata else None,
    }


def stream() -> Mapping[str, Any]:
    """Ask for an answer in pieces."""
    chunks = list(_model().stream(QUESTION))
    usage = [chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata]
    return {"pieces": [chunk.content for chunk in chunks], "completion_tokens": usage[-1]}


def error() -> Mapping[str, Any]:
    """Ask a model that there is not."""
    try:
        return {"text": _model(UNKNOWN).invoke(QUESTION).content}
    except openai.APIStatusError as failure:
        return told(failure)


def invalid() -> Mapping[str, Any]:
    """Ask for more tokens than fit."""
    try:
        return {"text": _model(max_tokens=TOO_MANY_TOKENS).invoke(QUESTION).content}
    except openai.APIStatusError as failure:
        return told(failure)


def leave() -> Mapping[str, Any]:
    """Leave a stream after some pieces."""
    chunks = _model(**ENDLESS).stream(QUESTION)
    seen = [next(chunks).content for _ in range(PIECES_BEFORE_LEAVING)]
    chunks.close()  # type: ignore[attr-defined]  # typed as an iterator, but a generator
    return {"pieces": seen}


def structured() -> Mapping[str, Any]:
    """Ask for an answer of a shape."""
    place = _model().with_structured_output(Place, method="json_schema").invoke(QUESTION)
    return {"value": Place.model_validate(place).model_dump()}


def call() -> Mapping[str, Any]:
    """Ask for a call of a tool."""
    return _called(_model().bind_tools([TOOL], tool_choice="required").invoke(TOOL_QUESTION))


def call_stream() -> Mapping[str, Any]:
    """Ask for a call of a named tool in pieces, and let the client put it together."""
    chunks = list(_model().bind_tools([TOOL], tool_choice=TOOL_NAME).stream(TOOL_QUESTION))
    whole = AIMessageChunk(content="")
    for chunk in chunks:
        whole = whole + chunk  # type: ignore[assignment]  # typed as any chunk, but of one kind
    return _called(whole, pieces=sum(1 for chunk in chunks if chunk.tool_call_chunks))


def round_trip() -> Mapping[str, Any]:
    """Give a call's result back to the model."""
    question = HumanMessage(TOOL_QUESTION)
    message = _proxied().bind_tools([TOOL], tool_choice="required").invoke([question])
    result = ToolMessage(TOOL_RESULT, tool_call_id=message.tool_calls[0]["id"])
    model = _proxied(max_tokens=FEW_TOKENS).bind_tools([TOOL], tool_choice="none")
    return _called(message, text=model.invoke([question, message, result]).content)


def retry() -> Mapping[str, Any]:
    """Ask with retries allowed."""
    return {"text": _proxied(max_tokens=FEW_TOKENS).invoke(QUESTION).content}


def refused() -> Mapping[str, Any]:
    """Ask in vain with retries allowed."""
    try:
        return {"text": _proxied(max_tokens=TOO_MANY_TOKENS).invoke(QUESTION).content}
    except openai.APIStatusError as failure:
        return told(failure)


if __name__ == "__main__":
    serve(chat, stream, error, invalid, leave, structured, call, call_stream, round_trip, retry, refused)
