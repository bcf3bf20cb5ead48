"""A conversation in the terminal: whose turn it is, and what both sides have said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from services.cli.service_client import ChatOptions, Message, ServiceClient, ServiceFailure

# A model may write any character; some would move the cursor or reprogram the terminal.
_CONTROLS = {
    code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}


class Conversation:
    """Holds the messages and gets the answers.

    Args:
        client: the service.
        options: how to answer.
        system: what the model is told before everything else, if anything.
        write: shows a piece of text at once.
    """

    def __init__(
        self, client: ServiceClient, options: ChatOptions, system: str | None, write: Callable[[str], None]
    ) -> None:
        self._client = client
        self._options = options
        self._write = write
        self._messages: list[Message] = [{"role": "system", "content": system}] if system else []

    @property
    def messages(self) -> Sequence[Message]:
        """What was said so far."""
        return self._messages

    def ask(self, text: str) -> None:
        """Send what the user said and show the answer as it comes.

        Ctrl-C stops the answer; what has come of it stays in the conversation. A failure is shown as one line. Where
        nothing was answered, the user's message is taken back, so that the next one follows an answer again.
        """
        said: Message = {"role": "user", "content": text}
        answer: list[str] = []
        try:
            reason = asyncio.run(self._answer([*self._messages, said], answer))
            mark = "[cut off: the answer reached its token limit]" if reason == "length" else ""
        except KeyboardInterrupt:
            mark = "[stopped]"
        except ServiceFailure as failure:
            mark = f"[error: {failure}]"
        if answer:
            self._messages += [said, {"role": "assistant", "content": "".join(answer)}]
        self._write(f"{_break_before(mark, answer)}{mark}\n")

    async def _answer(self, messages: Sequence[Message], answer: list[str]) -> str | None:
        reason: str | None = None
        async with aclosing(self._client.chat(messages, self._options)) as pieces:
            async for piece in pieces:
                if piece.text:
                    answer.append(piece.text)
                    self._write(piece.text.translate(_CONTROLS))
                reason = piece.finish_reason or reason
        return reason


def _break_before(mark: str, answer: Sequence[str]) -> str:
    if not mark or not answer:
        return ""
    return "" if answer[-1].endswith("\n") else "\n"
