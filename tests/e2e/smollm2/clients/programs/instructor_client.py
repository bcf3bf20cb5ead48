"""instructor, over OpenAI's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import instructor
import openai
from instructor.core.exceptions import InstructorRetryException
from pydantic import BaseModel
from scenarios import BASE_URL, MAX_TOKENS, MESSAGES, MODEL, UNKNOWN, serve, told


class Place(BaseModel):
    """What the model is to give."""

    name: Literal["Paris", "Berlin"]
    is_capital: bool


_OPENAI = openai.OpenAI(base_url=BASE_URL, api_key="none", max_retries=0)
_CLIENT = instructor.from_openai(_OPENAI, mode=instructor.Mode.JSON_SCHEMA)


def _ask(name: str) -> Place:
    options = {"max_tokens": MAX_TOKENS, "temperature": 0, "max_retries": 1}
    place = _CLIENT.chat.completions.create(model=name, messages=MESSAGES, response_model=Place, **options)
    return Place.model_validate(place)


def error() -> Mapping[str, Any]:
    """Ask a model that there is not."""
    try:
        return {"value": _ask(UNKNOWN).model_dump()}
    except (openai.APIStatusError, InstructorRetryException) as failure:
        return told(failure)


def structured() -> Mapping[str, Any]:
    """Ask for an answer of a shape."""
    return {"value": _ask(MODEL).model_dump()}


if __name__ == "__main__":
    serve({"error": error, "structured": structured})
