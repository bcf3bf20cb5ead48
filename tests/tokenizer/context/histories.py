"""Conversations of all sorts, and what every cut of them must keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from services.tokenizer.context.turns import staying
from services.tokenizer.prompt import ChatPrompt
from services.tokenizer.text_tokenizer import TextTokenizer

Message = Mapping[str, object]

# Words of several scripts, white space, and a text that spells a control token.
TEXTS = st.lists(
    st.sampled_from(
        ["the sea", " is 3.14", "\n\n", "naïve ", "漢字", "🦙", "<|im_end|>", "def f(x):\n    return x", "a " * 30]
    ),
    min_size=1,
    max_size=12,
).map("".join)


def said(role: str, text: str, **more: object) -> Message:
    """A message."""
    return {"role": role, "content": text, **more}


def chat_of(messages: Sequence[Message], **more: Any) -> ChatPrompt:
    """A conversation as a request gives it."""
    size = sum(len(str(message["content"]).encode()) for message in messages)
    return replace(ChatPrompt(list(messages), True, False, {}, size), **more)


@st.composite
def histories(draw: st.DrawFn, most_turns: int = 12) -> list[Message]:
    """Alternating turns, with or without a system message, that end with a user's message."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(said("system", draw(TEXTS)))
    for _ in range(draw(st.integers(0, most_turns - 1))):
        messages += [said("user", draw(TEXTS)), said("assistant", draw(TEXTS))]
    return [*messages, said("user", draw(TEXTS))]


@st.composite
def wild_histories(draw: st.DrawFn) -> list[Message]:
    """Messages of all roles in any order; a tool's result answers some call before it."""
    messages: list[Message] = []
    calls: list[str] = []
    for _ in range(draw(st.integers(1, 25))):
        role = draw(st.sampled_from(["system", "developer", "user", "user", "assistant", "call", "tool"]))
        if role == "call":
            calls.append(draw(st.sampled_from([f"call-{len(calls)}", *calls])))
            function = {"name": "f", "arguments": "{}"}
            call = {"id": calls[-1], "type": "function", "function": function}
            messages.append(said("assistant", draw(TEXTS), tool_calls=[call]))
        elif role == "tool":
            if calls:
                messages.append(said("tool", draw(TEXTS), tool_call_id=draw(st.sampled_from(calls))))
        else:
            messages.append(said(role, draw(TEXTS)))
    return messages or [said("user", "Hi")]


def tokens(messages: Sequence[Message], tokenizer: TextTokenizer) -> int:
    """Tokens of the prompt that the messages make."""
    return len(chat_of(messages).token_ids(tokenizer))


def is_a_cut(kept: Sequence[Message], whole: Sequence[Message]) -> bool:
    """Whether `kept` is all system messages and an end of the others that begins with a user's message."""
    others = [message for message in whole if message not in staying(whole)]
    kept_others = [message for message in kept if message not in staying(whole)]
    end = others[len(others) - len(kept_others) :]
    return (
        [message for message in whole if message in staying(whole) or any(message is one for one in end)] == list(kept)
        and kept_others == end
        and (kept_others == others or kept_others[0]["role"] == "user")
    )
