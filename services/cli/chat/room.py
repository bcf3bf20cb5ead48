"""All that a command at the prompt can see and change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.cli.chat.conversation import Conversation
from services.cli.chat.display import Display
from services.cli.chat.history import History
from services.cli.sessions_client import SessionsClient


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to be changed at the prompt, and what is done with it then.

    Args:
        text: is shown at first.
        send: takes what it has become.
    """

    text: str
    send: Callable[[str], object]


class Room:
    """A conversation and what is around it.

    Args:
        conversation: what is going on.
        display: where it is shown.
        sessions: the service's.
        models: asks for the names of those that can be chosen.
        presets: asks for those that can be chosen, as the service lists them.
        begin: makes the history of a new conversation, given what the model is told before everything else, and its
            name.
    """

    def __init__(
        self,
        conversation: Conversation,
        display: Display,
        sessions: SessionsClient,
        models: Callable[[], Sequence[str]],
        presets: Callable[[], Sequence[Mapping[str, Any]]],
        begin: Callable[[str | None, str], History],
    ) -> None:
        self.conversation = conversation
        self.display = display
        self.sessions = sessions
        self.models = models
        self.presets = presets
        self.begin = begin
        # What the next prompt begins with.
        self.draft: Draft | None = None
        self.is_over = False
