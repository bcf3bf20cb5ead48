"""The prompt of a terminal that cannot do more than readline."""

from __future__ import annotations

import readline
from collections.abc import Callable

from services.cli.chat.prompt import GOES_ON, PROMPT, as_utf8
from services.cli.chat.prompt_history import PromptHistory


class PlainPrompt:
    """A backslash at a line's end begins a new line.

    Args:
        history: what was typed before.
        keep: keeps what was typed.
    """

    def __init__(self, history: PromptHistory, keep: Callable[[str], None]) -> None:
        self._keep = keep
        for entry in history.entries:
            # It recalls lines, not texts.
            readline.add_history(entry.replace("\n", " "))

    def read(self, draft: str) -> str | None:
        """Return what was typed, or None at the end of the conversation."""
        if draft:
            readline.set_startup_hook(lambda: readline.insert_text(draft.replace("\n", " ")))
        lines: list[str] = []
        try:
            while (line := input(GOES_ON if lines else PROMPT)).endswith("\\"):
                readline.set_startup_hook(None)
                lines.append(line.removesuffix("\\"))
        except (EOFError, KeyboardInterrupt):
            print()
            return None
        finally:
            readline.set_startup_hook(None)
        text = as_utf8("\n".join([*lines, line]))
        self._keep(text)
        return text
