"""LangChain's client of OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import openai
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr
from scenarios import BASE_URL, ENDLESS, MAX_TOKENS, MODEL, PIECES_BEFORE_LEAVING, QUESTION, UNKNOWN, serve, told


class Place(BaseModel):
    """What the model is to give."""

    name: Literal["Paris", "Berlin"]
    is_capital: bool


def _model(name: str = MODEL, **options: Any) -> ChatOpenAI:
    options = {"max_tokens": MAX_TOKENS, **options}
    return ChatOpenAI(
        model=name,
        base_url=BASE_URL,
        api_key=SecretStr("none"),
        temperature=0,
        max_retries=0,
        stream_usage=True,
        **options,
    )


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


if __name__ == "__main__":
    serve({"chat": chat, "stream": stream, "error": error, "leave": leave, "structured": structured})
