"""Conversations without a terminal: only answers on standard output, all else on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from services.cli.chat.answer import Answer
from services.cli.chat.conversation import Conversation

_FAILED = 1
_INTERRUPTED = 130


def answer_each(conversation: Conversation, messages: Iterable[str], finish: Callable[[Answer, str], None]) -> int:
    """Have each message answered, as turns of one conversation; empty ones are passed over.

    Args:
        conversation: shows the answers.
        messages: are taken one by one.
        finish: is called after each answer, with the name of the model.

    Returns: 0, or 1 if an answer failed, or 130 at once when one was interrupted.
    """
    code = 0
    for message in messages:
        if not message.strip():
            continue
        answer = conversation.ask(message)
        finish(answer, conversation.options.model)
        if answer.is_stopped:
            return _INTERRUPTED
        if answer.error is not None:
            code = _FAILED
    return code
