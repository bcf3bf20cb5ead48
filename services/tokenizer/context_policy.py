"""What a caller wants done when a conversation does not fit the context."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ContextPolicyKind(Enum):
    """Ways to make it fit."""

    ERROR = "error"
    SLIDING_WINDOW = "sliding_window"
    SUMMARIZE = "summarize"


@dataclass(frozen=True, slots=True)
class ContextPolicy:
    """The way, and what is known of what came before the conversation's first message.

    Attributes:
        summary: of earlier messages that are not sent any more, as an earlier report told it; "" without.
    """

    kind: ContextPolicyKind
    summary: str = ""


REFUSE = ContextPolicy(ContextPolicyKind.ERROR)
"""What does not fit is refused."""
