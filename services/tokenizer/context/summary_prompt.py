"""Summaries in prompts: the prompt that asks the model for one, and its place in the prompt of the conversation.

The model is asked at the end of the very turns that are left out, behind the same system messages, so that the engine
finds most of that prompt in its prefix cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.chassis.errors import InvalidRequest
from services.tokenizer.context.turns import STAYING_ROLES, Message, staying, texts_of
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.text_tokenizer import TextTokenizer

SUMMARY_SHARE = 8
"""A summary has at most this part of the tokens that a prompt may have, …"""
MOST_SUMMARY_TOKENS = 256
"""… and at most this many; …"""
LEAST_SUMMARY_TOKENS = 16
"""… where fewer than this many are left for it, none is written."""

_HEADING = "Summary of the earlier part of this conversation:\n"
_INSTRUCTION = (
    "Summarize our conversation up to here, so that it can go on from the summary alone: facts, names, numbers,"
    " decisions, what I want, and what is still open. Keep what an earlier summary tells. Use the language of the"
    " conversation and at most {words} words. Write the summary and nothing else."
)
# Of a token, on average; the bound that holds is on tokens.
_WORDS_A_TOKEN = 0.6
# What a template may put around a message of its own.
_AROUND_MESSAGE = 16
# Tries for the length to which a turn is cut.
_CUTS = 10


def summary_room(limit: int) -> int:
    """Most tokens of the summary in a prompt of at most `limit` tokens."""
    return max(LEAST_SUMMARY_TOKENS, min(MOST_SUMMARY_TOKENS, limit // SUMMARY_SHARE))


def summary_frame(tokenizer: TextTokenizer) -> int:
    """Tokens that a prompt has more with a summary, beside the summary's own."""
    return len(tokenizer.encode(_HEADING, False)) + _AROUND_MESSAGE


def with_summary(chat: ChatPrompt, summary: str, tokenizer: TextTokenizer) -> ChatPrompt:
    """The chat with a summary at the end of its first message where that is a system message, else in one of its own.

    Where the template refuses system messages, it goes before the first user's message.
    """
    if not summary:
        return chat
    text = _HEADING + summary
    first, *rest = chat.messages
    if first.get("role") in STAYING_ROLES:
        return replace(chat, messages=[{**first, "content": _joined(first.get("content"), text)}, *rest])
    told = replace(chat, messages=[{"role": "system", "content": text}, *chat.messages])
    user = next((place for place, message in enumerate(chat.messages) if message.get("role") == "user"), None)
    if user is None or _is_taken(told, tokenizer):
        return told
    messages = list(chat.messages)
    messages[user] = {**messages[user], "content": _joined(text, messages[user].get("content"))}
    return replace(chat, messages=messages)


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt that asks for a summary.

    Attributes:
        token_ids: of the prompt.
        turns: number of turns that it holds or passes over.
        unsummarized: messages of those turns that it holds in part or not at all.
    """

    token_ids: list[int]
    turns: int
    unsummarized: int = 0


@dataclass(frozen=True, slots=True)
class Summarizing:
    """Asks for summaries of what is left out of a chat.

    Attributes:
        chat: the whole conversation; its system messages, options and variables are used.
        limit: most tokens of a prompt.
        words: that the summary may have.
    """

    chat: ChatPrompt
    tokenizer: TextTokenizer
    limit: int
    words: int

    @classmethod
    def of(cls, chat: ChatPrompt, tokenizer: TextTokenizer, context_length: int, most_tokens: int) -> Summarizing:
        """Ask for summaries of at most `most_tokens` tokens, in prompts that leave the context room for them."""
        words = max(1, round(most_tokens * _WORDS_A_TOKEN))
        return cls(chat, tokenizer, context_length - most_tokens, words)

    def overhead(self, summary: str) -> int:
        """Tokens of a question without any turns."""
        return len(self._prompt([], summary).token_ids(self.tokenizer))

    def newest(self, turns: Sequence[Sequence[Message]], summary: str, calls: int) -> int:
        """Number of the oldest turns to pass over, so that the others need about `calls` prompts at most."""
        capacity = self.limit - self.overhead(summary)
        # Turns do not fill prompts to the last token.
        left = calls * capacity * 3 // 4
        for position in range(len(turns) - 1, -1, -1):
            left -= sum(self._tokens(message) for message in turns[position])
            if left < 0:
                # The newest alone may still be cut.
                return min(position + 1, len(turns) - 1)
        return 0

    def next_question(self, turns: Sequence[Sequence[Message]], summary: str, *, last: bool) -> Question | None:
        """Ask about as many of the oldest turns as fit, with the summary of what came before them.

        The last question passes over turns from the oldest on until the others fit. A turn that does not fit by itself
        is cut.

        Returns: None where there is no room for anything.
        """
        best: Question | None = None
        low, high = 1, len(turns)
        while low <= high:
            count = (low + high) // 2
            chosen = turns[len(turns) - count :] if last else turns[:count]
            token_ids = self._prompt(_flat(chosen), summary).token_ids(self.tokenizer)
            if len(token_ids) <= self.limit:
                passed_over = _flat(turns[: len(turns) - count]) if last else []
                best, low = Question(token_ids, len(turns) if last else count, len(passed_over)), count + 1
            else:
                high = count - 1
        if best is not None:
            return best
        turn = turns[-1] if last else turns[0]
        passed_over = _flat(turns[:-1]) if last else []
        cut_ids = self._cut(turn, summary)
        if cut_ids is None:
            return None
        return Question(cut_ids, len(turns) if last else 1, len(passed_over) + len(turn))

    def _cut(self, turn: Sequence[Message], summary: str) -> list[int] | None:
        """The prompt with the longest beginnings of a turn's messages that fit."""
        best: list[int] | None = None
        low, high = 0, max(len(text) for message in turn for text in texts_of(message))
        for _ in range(_CUTS):
            length = (low + high) // 2
            token_ids = self._prompt([_beginning(message, length) for message in turn], summary).token_ids(
                self.tokenizer
            )
            if len(token_ids) <= self.limit:
                best, low = token_ids, length + 1
            else:
                high = length
        return best

    def _prompt(self, messages: Sequence[Message], summary: str) -> ChatPrompt:
        question = {"role": "user", "content": _INSTRUCTION.format(words=self.words)}
        asking = replace(
            self.chat,
            messages=[*staying(self.chat.messages), *messages, question],
            add_generation_prompt=True,
            continue_final_message=False,
            # Tools are not offered: the answer is to be text.
            tools=(),
            # A variable of several model families; other templates pass over it.
            template_variables={**self.chat.template_variables, "enable_thinking": False},
        )
        return with_summary(asking, summary, self.tokenizer)

    def _tokens(self, message: Message) -> int:
        return len(self.tokenizer.encode("\n".join(texts_of(message)), False)) + _AROUND_MESSAGE


def _is_taken(chat: ChatPrompt, tokenizer: TextTokenizer) -> bool:
    try:
        chat.segments(tokenizer)
    except InvalidRequest as error:
        return error.reason != "CHAT_TEMPLATE_FAILED"
    return True


def _flat(turns: Sequence[Sequence[Message]]) -> list[Message]:
    return [message for turn in turns for message in turn]


def _beginning(message: Message, length: int) -> Message:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": _until(content, length)}
    if isinstance(content, list):
        return {**message, "content": [_part_beginning(part, length) for part in content]}
    return message


def _part_beginning(part: object, length: int) -> object:
    if isinstance(part, Mapping) and isinstance(text := part.get("text"), str):
        return {**part, "text": _until(text, length)}
    return part


def _until(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + " […]"


def _joined(first: object, second: object) -> object:
    """Two contents as one: text, or parts where one of them is parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}" if first else second
    return [*_parts(first), *_parts(second)]


def _parts(content: object) -> list[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list) else []
