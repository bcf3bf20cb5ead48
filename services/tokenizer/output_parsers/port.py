"""What an output parser takes and gives."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Content:
    """Text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text of the reasoning before the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """The next piece of a call.

    Attributes:
        index: position of the call among those of its choice, from 0.
        arguments: next characters of the arguments' JSON text.
        id: in the first piece of a call only.
        name: of the function, never empty, in the first piece only.
    """

    index: int
    arguments: str
    id: str | None = None
    name: str | None = None


Part = Content | Reasoning | ToolCallPiece


class OutputParser(Protocol):
    """Takes one choice's text as it comes. Its parts do not depend on where the text was split.

    Nothing but the tags and the punctuation of calls is left out: what begins as a call and is none comes as content.
    """

    def feed(self, text: str) -> list[Part]:
        """Parts that are certain after this text."""

    def flush(self) -> list[Part]:
        """The rest at the end of the stream."""


NewId = Callable[[], str]
"""Makes a tool call's id."""


def call_id() -> str:
    """An id as OpenAI makes them."""
    return f"call_{secrets.token_hex(12)}"


def short_call_id() -> str:
    """An id that Mistral's templates accept: nine letters and digits."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))
