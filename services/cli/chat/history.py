"""Where a conversation is kept, and how a turn of it is put to the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from services.cli.chat.answer import Answer
from services.cli.service_client import Message

# The request's fields that say what to answer.
Turn = Mapping[str, Any]


class NothingAsked(Exception):
    """There is no question yet that could be answered again or changed."""

    def __init__(self) -> None:
        super().__init__("nothing was asked yet; ask something first")


class History(Protocol):
    """A conversation. Where it is kept at the service, methods raise what `ServiceClient.ask` does."""

    @property
    def session_id(self) -> str | None:
        """The service's name for it, where the service keeps it."""

    @property
    def system(self) -> str | None:
        """What the model is told before everything else, if anything."""

    async def set_system(self, text: str | None) -> None:
        """Change what the model is told before everything else, from the next answer on."""

    async def set_model(self, name: str) -> None:
        """Note who answers from now on, for whoever goes on with it."""

    async def messages(self) -> Sequence[Message]:
        """Return what was said, oldest first; `role` and `content` at least."""

    async def last_question(self) -> str:
        """Return what the user said last, answered or not. Raises: NothingAsked."""

    async def next_turn(self, text: str) -> Turn:
        """Return the turn in which the user says something new."""

    async def again(self) -> Turn:
        """Return the turn in which the last question is answered once more. Raises: NothingAsked."""

    async def instead(self, text: str) -> Turn:
        """Return the turn in which the user says something else in place of the last question. Raises: NothingAsked."""

    def keep(self, turn: Turn, answer: Answer) -> None:
        """Take note of how a turn ended."""
