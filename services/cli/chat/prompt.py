"""Where messages are typed."""

from __future__ import annotations

from typing import Protocol

PROMPT, GOES_ON = "> ", "… "


class Prompt(Protocol):
    """Reads what the user types."""

    def read(self, draft: str) -> str | None:
        """Return a message or a command, of one or more lines, or None at the end of the conversation.

        Args:
            draft: what can be changed at first; mostly empty.
        """


def as_utf8(text: str) -> str:
    """Return a text without the lone surrogates that typing in another encoding leaves, which no request can carry."""
    return text.encode(errors="surrogateescape").decode(errors="replace")
