"""Log probabilities of tokens in OpenAI's two shapes.

https://platform.openai.com/docs/api-reference/chat/object and …/completions/object
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# JSON knows no infinity; OpenAI and vLLM tell this for what is next to impossible.
_LEAST = -9999.0


class TokenLogprob(NamedTuple):
    """One token.

    Attributes:
        token: its own bytes, which may be a part of a character.
        logprob: natural logarithm of its probability; None for a prompt's first token, which has none.
        text_offset: characters of the choice's text before it.
        top: bytes and log probabilities of the most likely tokens, most likely first.
    """

    token: bytes
    logprob: float | None
    text_offset: int
    top: Sequence[tuple[bytes, float]]


def moved(tokens: Iterable[TokenLogprob], characters: int) -> list[TokenLogprob]:
    """Return the tokens of a text that begins so many characters later."""
    return [token._replace(text_offset=token.text_offset + characters) for token in tokens]


def chat_logprobs(tokens: Iterable[TokenLogprob]) -> dict[str, Any]:
    """Return the object of a chat's choice."""
    content = []
    for token, logprob, _, top in tokens:
        entry = _chat_token(token, _LEAST if logprob is None else logprob)
        entry["top_logprobs"] = [_chat_token(alternative, logprob) for alternative, logprob in top]
        content.append(entry)
    return {"content": content, "refusal": None}


def completion_logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return the object of a completion's choice: columns. The chosen token is among the alternatives in any case."""
    return {
        "tokens": [_string(token.token) for token in tokens],
        "token_logprobs": [None if token.logprob is None else max(token.logprob, _LEAST) for token in tokens],
        "top_logprobs": [_completion_top(token) for token in tokens],
        "text_offset": [token.text_offset for token in tokens],
    }


def _chat_token(token: bytes, logprob: float) -> dict[str, Any]:
    return {
        "token": token.decode("utf-8", "replace"),
        "logprob": logprob if logprob > _LEAST else _LEAST,
        "bytes": list(token),
    }


def _completion_top(token: TokenLogprob) -> dict[str, float] | None:
    if token.logprob is None:
        return None
    top: dict[str, float] = {}
    # Parts of different characters look alike as strings: the most likely one stays.
    for alternative, logprob in token.top:
        top.setdefault(_string(alternative), max(logprob, _LEAST))
    top.setdefault(_string(token.token), max(token.logprob, _LEAST))
    return top


def _string(token: bytes) -> str:
    return token.decode(errors="replace")
