"""A conversation that the service keeps: each turn sends only what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.cli.chat.answer import Answer
from services.cli.chat.history import NothingAsked, Turn
from services.cli.service_client import Message
from services.cli.sessions_client import Session, SessionsClient


class SessionHistory:
    """One session, asked anew each time: other clients may go on with it, too.

    Args:
        sessions: the service's.
        wanted: fields of the session that the first turn makes, such as `model` and `system`; None takes `session`.
        session: one that is there already.
    """

    def __init__(
        self, sessions: SessionsClient, wanted: Mapping[str, Any] | None = None, session: Session | None = None
    ) -> None:
        self._sessions = sessions
        self._wanted = {name: value for name, value in (wanted or {}).items() if value is not None}
        if session is not None:
            self._wanted["model"] = session.get("model")
        self._id: str | None = None if session is None else str(session["id"])
        self._system: str | None = self._wanted.get("system") if session is None else session.get("system")
        # Was asked, but the service has not said that it stored it: it may lack the id by which to answer it again.
        self._unsure: str | None = None

    @property
    def model(self) -> str | None:
        """Who answered when the session was last used, if that is known."""
        return self._wanted.get("model")

    @property
    def session_id(self) -> str | None:
        """None until the first turn."""
        return self._id

    @property
    def system(self) -> str | None:
        """What the model is told before everything else, if anything."""
        return self._system

    async def set_system(self, text: str | None) -> None:
        """Change it from the next answer on, for all who go on with the session."""
        if self._id is not None:
            await self._sessions.change(self._id, {"system": text})
        self._wanted["system"] = text
        self._system = text

    async def set_model(self, name: str) -> None:
        """Note who answers from now on, for all who go on with the session."""
        if self._id is not None:
            await self._sessions.change(self._id, {"model": name})
        self._wanted["model"] = name

    async def messages(self) -> Sequence[Message]:
        """Return what was said on the way to the session's head, with the system's message first."""
        said = await self._path()
        if self._system and not (said and said[0].get("role") == "system"):
            return [{"role": "system", "content": self._system}, *said]
        return said

    async def last_question(self) -> str:
        """Return what the user said last."""
        if self._unsure is not None:
            return self._unsure
        return str((await self._last_user())["content"])

    async def next_turn(self, text: str) -> Turn:
        """Return the turn in which the user says something new. The first makes the session.

        Raises:
            SessionsUnavailable: the service keeps no sessions.
        """
        if self._id is None:
            self._id = str((await self._sessions.create(self._wanted))["id"])
        return {"session_id": self._id, "messages": [{"role": "user", "content": text}]}

    async def again(self) -> Turn:
        """Return the turn in which the last question is answered once more; the service keeps both answers."""
        stored = await self._stored_question()
        if stored is None:
            return await self.next_turn(self._unsure or "")
        return {"session_id": self._id, "parent_message_id": stored["id"]}

    async def instead(self, text: str) -> Turn:
        """Return the turn in which the user says something else; the service keeps both branches."""
        stored = await self._stored_question()
        turn = await self.next_turn(text)
        return turn if stored is None else {**turn, "parent_message_id": stored.get("parent_id")}

    def keep(self, turn: Turn, answer: Answer) -> None:
        """Remember the question where it is not sure that the service stored it."""
        is_stored = answer.session is not None or bool(answer.text)
        said = turn.get("messages")
        self._unsure = str(said[-1]["content"]) if said and not is_stored else None

    async def _stored_question(self) -> Message | None:
        """Return the last question as the service has it, or None where it does not have it."""
        if self._unsure is None:
            return await self._last_user()
        users = [message for message in await self._path() if message.get("role") == "user"]
        return users[-1] if users and users[-1].get("content") == self._unsure else None

    async def _path(self) -> Sequence[Message]:
        return [] if self._id is None else await self._sessions.messages(self._id)

    async def _last_user(self) -> Message:
        for message in reversed(await self._path()):
            if message.get("role") == "user":
                return message
        raise NothingAsked
