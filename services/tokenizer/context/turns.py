"""A conversation as turns: what may be left out of it, and in which pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

Message = Mapping[str, object]
Turn = tuple[int, ...]
"""Positions of a turn's messages, in order."""

STAYING_ROLES = ("system", "developer")
"""Their messages are part of no turn: they always stay."""


def turns_of(messages: Sequence[Message]) -> list[Turn]:
    """The turns, oldest first. A turn is a user's message with everything that follows it up to the next.

    What comes before the first user's message makes a turn of its own. Where a tool's result comes only after a later
    user's message, that message begins no turn: a result is never separated from its call.
    """
    between = _inside_calls(messages)
    turns: list[list[int]] = []
    for position, message in enumerate(messages):
        if message.get("role") in STAYING_ROLES:
            continue
        if not turns or (message.get("role") == "user" and not between[position]):
            turns.append([])
        turns[-1].append(position)
    return [tuple(turn) for turn in turns]


def without(messages: Sequence[Message], turns: Sequence[Turn]) -> list[Message]:
    """The messages but those of the turns."""
    left_out = {position for turn in turns for position in turn}
    return [message for position, message in enumerate(messages) if position not in left_out]


def staying(messages: Sequence[Message]) -> list[Message]:
    """The messages that no turn holds."""
    return [message for message in messages if message.get("role") in STAYING_ROLES]


def texts_of(message: Message) -> Iterator[str]:
    """All text of a message that a template may show."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    if isinstance(reasoning := message.get("reasoning"), str):
        yield reasoning
    for function in _called(message):
        yield from (text for name in ("name", "arguments") if isinstance(text := function.get(name), str))


def _inside_calls(messages: Sequence[Message]) -> list[bool]:
    """Of each position, whether a call before it is answered at it or after it."""
    calls: dict[object, int] = {}
    changes = [0] * (len(messages) + 1)
    for position, message in enumerate(messages):
        if message.get("role") == "tool" and (call := calls.get(message.get("tool_call_id"))) is not None:
            changes[call + 1] += 1
            changes[position + 1] -= 1
        calls.update((call_id, position) for call_id in _call_ids(message))
    return [depth > 0 for depth in accumulate(changes[:-1])]


def _call_ids(message: Message) -> Iterator[object]:
    calls = message.get("tool_calls")
    yield from (call.get("id") for call in calls if isinstance(call, Mapping)) if isinstance(calls, list) else ()


def _called(message: Message) -> Iterator[Mapping[str, object]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield function
