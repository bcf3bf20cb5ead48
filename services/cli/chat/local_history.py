"""A conversation that is kept here alone, and sent whole with each turn."""

from __future__ import annotations

from collections.abc import Sequence

from services.cli.chat.answer import Answer
from services.cli.chat.history import NothingAsked, Turn
from services.cli.service_client import Message


class LocalHistory:
    """Keeps the messages. A question that got no answer is taken back, so that the next follows an answer again.

    Args:
        system: what the model is told before everything else, if anything.
    """

    def __init__(self, system: str | None) -> None:
        self._system = system
        self._messages: list[Message] = []
        self._unanswered: str | None = None

    @property
    def session_id(self) -> str | None:
        """Always None."""
        return None

    @property
    def system(self) -> str | None:
        """What the model is told before everything else, if anything."""
        return self._system

    async def set_system(self, text: str | None) -> None:
        """Change it from the next answer on."""
        self._system = text

    async def set_model(self, name: str) -> None:
        """Each request says it anyway."""

    async def messages(self) -> Sequence[Message]:
        """Return what was said, with the system's message first."""
        return self._with_system(self._messages)

    async def last_question(self) -> str:
        """Return what the user said last."""
        if self._unanswered is not None:
            return self._unanswered
        return str(self._messages[self._last_user()]["content"])

    async def next_turn(self, text: str) -> Turn:
        """Return the turn in which the user says something new."""
        return self._turn(self._messages, text)

    async def again(self) -> Turn:
        """Return the turn in which the last question is answered once more."""
        if self._unanswered is not None:
            return self._turn(self._messages, self._unanswered)
        at = self._last_user()
        return self._turn(self._messages[:at], str(self._messages[at]["content"]))

    async def instead(self, text: str) -> Turn:
        """Return the turn in which the user says something else in place of the last question."""
        if self._unanswered is not None:
            return self._turn(self._messages, text)
        return self._turn(self._messages[: self._last_user()], text)

    def keep(self, turn: Turn, answer: Answer) -> None:
        """Keep the turn and what came of its answer, if anything did."""
        said = [message for message in turn["messages"] if message["role"] != "system"]
        if answer.text:
            self._messages = [*said, {"role": "assistant", "content": answer.text}]
            self._unanswered = None
        else:
            self._unanswered = str(said[-1]["content"])

    def _turn(self, before: Sequence[Message], text: str) -> Turn:
        return {"messages": self._with_system([*before, {"role": "user", "content": text}])}

    def _with_system(self, messages: Sequence[Message]) -> list[Message]:
        return [{"role": "system", "content": self._system}, *messages] if self._system else list(messages)

    def _last_user(self) -> int:
        for at in range(len(self._messages) - 1, -1, -1):
            if self._messages[at]["role"] == "user":
                return at
        raise NothingAsked
