"""A conversation in the terminal: asks, shows the answer as it comes, and has it kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from services.cli.chat.answer import Answer
from services.cli.chat.display import Display
from services.cli.chat.history import History, Turn
from services.cli.chat.local_history import LocalHistory
from services.cli.chat.notices import notices
from services.cli.service_client import ChatOptions, ServiceClient
from services.cli.service_failure import Refused, ServiceFailure
from services.cli.sessions_client import SessionsUnavailable

_CONFLICT = 409
# Together longer than the second within which a generation that is left has ended.
_BUSY_TRIES = 10
_BUSY_SECONDS = 0.2


class Conversation:
    """Holds what the next turn depends on; all of it may be changed between turns.

    Args:
        client: the service.
        options: how to answer.
        history: where it is kept.
        display: where it is shown.
    """

    def __init__(self, client: ServiceClient, options: ChatOptions, history: History, display: Display) -> None:
        self._client = client
        self.options = options
        self.history = history
        self._display = display
        self.last: Answer | None = None

    def ask(self, text: str) -> Answer:
        """Send what the user said, show the answer as it comes, and return it.

        Ctrl-C stops the answer, at the service, too; what has come of it is kept. A failure is shown as one line.
        """
        return self._turn(lambda: self._next_turn(text))

    def retry(self) -> Answer:
        """Have the last question answered once more. Raises: NothingAsked."""
        return self._turn(self.history.again)

    def edit(self, text: str) -> Answer:
        """Say something else in place of the last question. Raises: NothingAsked."""
        return self._turn(lambda: self.history.instead(text))

    def _turn(self, turn_of: Callable[[], Awaitable[Turn]]) -> Answer:
        answer = Answer()
        turn: list[Turn] = []
        ending = None
        try:
            asyncio.run(self._run(turn_of, answer, turn))
        except KeyboardInterrupt:
            answer.error = ending = "stopped"
            answer.is_stopped = True
        except ServiceFailure as failure:
            answer.error = str(failure)
            ending = f"error: {failure}"
        self.last = answer
        if turn:
            self.history.keep(turn[0], answer)
        for line in [*notices(answer), *([ending] if ending else [])]:
            self._display.note(line)
        return answer

    async def _run(self, turn_of: Callable[[], Awaitable[Turn]], answer: Answer, turn: list[Turn]) -> None:
        turn.append(await turn_of())
        view = self._display.answer()
        # The service may still be ending the answer that was stopped just now, which keeps its session busy.
        tries = _BUSY_TRIES if self.last is not None and self.last.is_stopped else 1
        try:
            while True:
                answer.asked()
                try:
                    async with aclosing(self._client.chat(turn[0], self.options)) as pieces:
                        async for piece in pieces:
                            answer.take(piece)
                            view.take(piece)
                    return
                except Refused as refused:
                    tries -= 1
                    if refused.status != _CONFLICT or not tries:
                        raise
                await asyncio.sleep(_BUSY_SECONDS)
        finally:
            view.close()

    async def _next_turn(self, text: str) -> Turn:
        try:
            return await self.history.next_turn(text)
        except SessionsUnavailable as failure:
            self._display.note(f"the service keeps no sessions ({failure}); this conversation is kept here alone")
            self.history = LocalHistory(self.history.system)
            return await self.history.next_turn(text)
