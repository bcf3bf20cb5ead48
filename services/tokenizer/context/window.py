"""The longest end of a conversation that fits, token-exact, from a beginning that stays the same for several turns.

A caller that sends its whole history each time must find the kept prefix unchanged from turn to turn, or the engine's
prefix cache is of no use. So turns are left out up to fixed points, which follow from the history's beginning alone:
they lie a quantum of tokens apart, and the first of them that makes the rest fit is taken. It stays the first until the
conversation has grown by about a quantum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.chassis.errors import InvalidRequest
from services.tokenizer.context.turns import Message, Turn, staying, texts_of, turns_of, without
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.text_tokenizer import TextTokenizer

QUANTUM_SHARE = 4
"""Points lie about this part of the room for turns apart."""
ANSWER_SHARE = 4
"""Part of the context that is left for the answer where the request does not say how long it may be, …"""
MOST_ANSWER_TOKENS = 4096
"""… but not more tokens than this."""

# What a template puts around a message. Only the points depend on it, not what fits.
_AROUND_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Window:
    """What fits of a conversation.

    Attributes:
        chat: with the messages that stay.
        token_ids: of the prompt that it makes.
        dropped: the turns left out, as positions in the whole conversation.
        dropped_tokens: prompt tokens that they would have taken; where a conversation is many times too long, counted
            message by message.
    """

    chat: ChatPrompt
    token_ids: list[int]
    dropped: Sequence[Turn] = ()
    dropped_tokens: int = 0


def answer_room(context_length: int, max_tokens: int | None) -> int:
    """Tokens of the context that the prompt must leave free, at least one."""
    if max_tokens is not None:
        return max(1, max_tokens)
    return max(1, min(context_length // ANSWER_SHARE, MOST_ANSWER_TOKENS))


def fitted(chat: ChatPrompt, tokenizer: TextTokenizer, limit: int, whole: Sequence[int] | None = None) -> Window:
    """Leave out the oldest turns until the prompt has at most `limit` tokens. The last turn always stays.

    Renders and encodes the whole once, unless that is known to be hopeless, and then about as often as the logarithm of
    how many quanta it is too long.

    Args:
        whole: ids of the whole conversation's prompt, where they are known.

    Raises:
        InvalidRequest: the messages make no prompt, or what always stays is too long by itself.
    """
    turns = turns_of(chat.messages)
    sizes = _Sizes(chat, turns)
    if whole is None and tokenizer.least_tokens(sizes.after(0)) <= limit:
        whole = chat.token_ids(tokenizer)
    if whole is not None and len(whole) <= limit:
        return Window(chat, list(whole))
    counts = [_count(chat.messages, turn, tokenizer) for turn in turns[:-1]]
    room = limit - sum(_tokens(message, tokenizer) for message in staying(chat.messages))
    points = [
        point for point in drop_points(counts, quantum(room)) if tokenizer.least_tokens(sizes.after(point)) <= limit
    ]
    found: Window | None = None
    # Of what always stays, once it is known.
    tokens = len(whole) if whole is not None and len(turns) <= 1 else None
    low, high = 0, len(points)
    while low < high:
        middle = (low + high) // 2
        dropped = turns[: points[middle]]
        kept = replace(chat, messages=without(chat.messages, dropped))
        token_ids = kept.token_ids(tokenizer)
        if len(token_ids) <= limit:
            left_out = sum(counts[: len(dropped)]) if whole is None else max(0, len(whole) - len(token_ids))
            found, high = Window(kept, token_ids, dropped, left_out), middle
        else:
            tokens, low = len(token_ids), middle + 1
    if found is None:
        raise _too_long(tokens, limit)
    return found


def drop_points(counts: Sequence[int], quantum: int) -> list[int]:
    """Numbers of turns that may be left out, ascending; the last leaves out all.

    The first turns that reach a multiple of the quantum make a point; behind the last such point each turn makes one.

    Args:
        counts: tokens of each turn that may be left out, oldest first.
    """
    points: list[int] = []
    tokens, following = 0, quantum
    for number, count in enumerate(counts, 1):
        tokens += count
        if tokens >= following:
            points.append(number)
            following = (tokens // quantum + 1) * quantum
    return [*points, *range((points[-1] if points else 0) + 1, len(counts) + 1)]


def quantum(room: int) -> int:
    """Tokens between the points, for a room of so many tokens for turns.

    A number of three binary digits and noughts, so that requests with a little more or less room have the same points.
    """
    most = max(1, room // QUANTUM_SHARE)
    noughts = max(0, most.bit_length() - 3)
    return most >> noughts << noughts


class _Sizes:
    """Characters of what is kept, by which the hopeless is known without rendering it."""

    def __init__(self, chat: ChatPrompt, turns: Sequence[Turn]) -> None:
        sizes = [sum(map(len, texts_of(message))) for message in chat.messages]
        self._turns = [sum(sizes[position] for position in turn) for turn in turns]
        self._whole = sum(sizes)

    def after(self, dropped: int) -> int:
        """Those left when so many turns are left out."""
        return self._whole - sum(self._turns[:dropped])


def _count(messages: Sequence[Message], turn: Turn, tokenizer: TextTokenizer) -> int:
    return sum(_tokens(messages[position], tokenizer) for position in turn)


def _tokens(message: Message, tokenizer: TextTokenizer) -> int:
    return len(tokenizer.encode("\n".join(texts_of(message)), False)) + _AROUND_MESSAGE


def _too_long(tokens: int | None, limit: int) -> InvalidRequest:
    has = "more" if tokens is None else f"{tokens} tokens"
    return InvalidRequest(
        f"the context leaves {max(0, limit)} tokens for the prompt beside the answer, but the system messages and the"
        f" last turn alone have {has}; shorten them or lower max_tokens",
        param="prompt",
        reason="CONTEXT_LENGTH_EXCEEDED",
    )
