"""instructor, over OpenAI's client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import instructor
import openai
from instructor.core.exceptions import InstructorRetryException
from scenarios import (
    BASE_URL,
    MAX_TOKENS,
    MESSAGES,
    MODEL,
    PROXY_BASE_URL,
    RETRIES,
    TOO_MANY_TOKENS,
    UNKNOWN,
    Place,
    called,
    serve,
    told,
)


def _client(mode: instructor.Mode, base_url: str = BASE_URL, retries: int = 0) -> Any:
    client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=retries)
    return instructor.from_openai(client, mode=mode)


_OF_SCHEMA = _client(instructor.Mode.JSON_SCHEMA)
_OF_TOOLS = _client(instructor.Mode.TOOLS)
_PROXIED = _client(instructor.Mode.JSON_SCHEMA, PROXY_BASE_URL, RETRIES)


def _options(**options: Any) -> dict[str, Any]:
    asked = {"model": MODEL, "messages": MESSAGES, "max_tokens": MAX_TOKENS, "temperature": 0, "max_retries": 1}
    return {**asked, "response_model": Place, **options}


def _ask(client: Any = _OF_SCHEMA, **options: Any) -> Place:
    return Place.model_validate(client.chat.completions.create(**_options(**options)))


def _failed(client: Any = _OF_SCHEMA, **options: Any) -> Mapping[str, Any]:
    try:
        return {"value": _ask(client, **options).model_dump()}
    except (openai.APIStatusError, InstructorRetryException) as failure:
        return told(failure)


def error() -> Mapping[str, Any]:
    """Ask a model that there is not."""
    return _failed(model=UNKNOWN)


def invalid() -> Mapping[str, Any]:
    """Ask for more tokens than fit."""
    return _failed(max_tokens=TOO_MANY_TOKENS)


def structured() -> Mapping[str, Any]:
    """Ask for an answer of a shape."""
    return {"value": _ask().model_dump()}


def call() -> Mapping[str, Any]:
    """Ask for an answer of a shape by way of a named tool."""
    place = _ask(_OF_TOOLS)
    return called(Place.__name__, place.model_dump())


def call_stream() -> Mapping[str, Any]:
    """Ask for the same in pieces: an object that fills up."""
    parts: Iterator[Any] = _OF_TOOLS.chat.completions.create_partial(**_options())
    seen = [part.model_dump() for part in parts]
    return called(Place.__name__, Place.model_validate(seen[-1]).model_dump(), pieces=len(seen))


def retry() -> Mapping[str, Any]:
    """Ask with retries allowed."""
    return {"text": str(_ask(_PROXIED))}


def refused() -> Mapping[str, Any]:
    """Ask in vain with retries allowed."""
    return _failed(_PROXIED, max_tokens=TOO_MANY_TOKENS)


if __name__ == "__main__":
    serve(error, invalid, structured, call, call_stream, retry, refused)
