"""One streamed answer: its events' times, told from their bytes.

The rules of the format: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream. The
chunks in it: https://platform.openai.com/docs/api-reference/chat/streaming.

A chunk counts when it brings a token: not the opening that tells the role alone, not an empty one that only ends a
choice, not the usage. One with an empty text does count, since a server may send a token whose text is held back.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

# What a chunk in the middle of an answer has in it, as compact and as spaced JSON. Inside a JSON string the quotes
# would be escaped, so no text of a model can be mistaken for it.
_UNFINISHED = b'"finish_reason":null'
_UNFINISHED_SPACED = b'"finish_reason": null'
_ROLE = b'"role":'
_CONTENTS = ("content", "text", "reasoning_content", "reasoning", "tool_calls", "refusal", "function_call")
# Of a message in the report.
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an answer counts as failed.

    Args:
        kind: the same for all that failed in the same way.
        message: what the server or the socket said.
    """

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server counted. `cached_tokens` is None where it does not tell."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None


class TokenStream:
    """Reads the body of one streamed answer.

    Args:
        choices: number of answers that were asked for; with more than one, every chunk is parsed.
        cancel_after: number of chunks with tokens after which the reader leaves; None to read to the end.
    """

    __slots__ = (
        "_cancel_after",
        "_reads_plainly",
        "_rest",
        "by_choice",
        "done_at",
        "failure",
        "is_cut",
        "times",
        "usage",
    )

    def __init__(self, choices: int, cancel_after: int | None) -> None:
        # Whether a chunk in the middle counts by its looks alone.
        self._reads_plainly = choices == 1
        self._cancel_after = cancel_after if cancel_after is not None else -1
        self._rest = b""
        self.times = array("d")
        """When the chunks with tokens of the first choice came; `by_choice` has those of all."""
        self.by_choice: dict[int, array[float]] = {0: self.times}
        self.done_at: float | None = None
        self.usage: Usage | None = None
        self.failure: Failure | None = None
        self.is_cut = False
        """Whether `cancel_after` was reached."""

    @property
    def chunks(self) -> int:
        """Number of chunks with tokens."""
        return sum(map(len, self.by_choice.values()))

    def feed(self, body: bytes, now: float) -> bool:
        """Take the next bytes, however they are cut, which came at `now`. Returns: whether to stop reading."""
        if self._rest:
            body = self._rest + body
            self._rest = b""
        if self._reads_plainly and _is_plain(body) and body.find(b"\n\n") == len(body) - 2:
            # The usual case: one whole event, and nothing else.
            self.times.append(now)
            self.is_cut = len(self.times) == self._cancel_after
            return self.is_cut
        if b"\r" in body:
            # The last one may be the first half of a line end.
            held = b"\r" if body.endswith(b"\r") else b""
            body = body.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            *events, rest = body.split(b"\n\n")
            self._rest = rest + held
        else:
            *events, self._rest = body.split(b"\n\n")
        for event in events:
            if self._reads_plainly and _is_plain(event):
                self.times.append(now)
            else:
                self._take(event, now)
            self.is_cut = len(self.times) == self._cancel_after
            if self.is_cut or self.failure is not None:
                return True
        return False

    def end(self, now: float) -> None:
        """The body is whole: a lone carriage return that ends it does end an event."""
        if self._rest.endswith(b"\n\r") and self.failure is None:
            event, self._rest = self._rest[:-2], b""
            self._take(event, now)
        if self.done_at is None and self.failure is None:
            self.failure = Failure("stream ended without [DONE]", f"after {self.chunks} chunks with tokens")

    def _take(self, event: bytes, now: float) -> None:
        """Take an event that is not plainly one token of one choice."""
        lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        if not lines:
            return
        text = b"\n".join(lines)
        if self.done_at is not None:
            self.failure = Failure("event after [DONE]", _shown(text))
        elif text == b"[DONE]":
            self.done_at = now
            self._reads_plainly = False
        else:
            try:
                self._take_chunk(orjson.loads(text), now)
            except (ValueError, TypeError, KeyError, AttributeError):
                self.failure = Failure("malformed event", _shown(text))

    def _take_chunk(self, chunk: Mapping[str, Any], now: float) -> None:
        if error := chunk.get("error"):
            self.failure = Failure(f"error event {_error_name(error)}".rstrip(), error_message(error))
            return
        if usage := chunk.get("usage"):
            details = usage.get("prompt_tokens_details") or {}
            prompt_tokens, cached_tokens = usage.get("prompt_tokens") or 0, details.get("cached_tokens")
            self.usage = Usage(prompt_tokens, usage["completion_tokens"], cached_tokens)
        choices: Sequence[Mapping[str, Any]] = chunk.get("choices") or ()
        for choice in choices:
            if _bears_token(choice):
                self.by_choice.setdefault(choice.get("index", 0), array("d")).append(now)


def error_kind(status: int, body: bytes) -> Failure:
    """Return the failure that an answer with a status other than 200 is."""
    try:
        error = orjson.loads(body)["error"]
        return Failure(f"HTTP {status} {_error_name(error)}".rstrip(), error_message(error))
    except (ValueError, TypeError, KeyError):
        return Failure(f"HTTP {status}", _shown(body))


def error_message(error: Any) -> str:
    """Return what an error object says, in one line."""
    message = error.get("message") if isinstance(error, dict) else error
    return _shown(str(message or error).encode())


def _error_name(error: Any) -> str:
    return str(error.get("code") or error.get("type") or "") if isinstance(error, dict) else ""


def _is_plain(event: bytes) -> bool:
    return event.startswith(b"data:") and (_UNFINISHED in event or _UNFINISHED_SPACED in event) and _ROLE not in event


def _bears_token(choice: Mapping[str, Any]) -> bool:
    delta = choice.get("delta")
    parts = choice if delta is None else delta
    if any(parts.get(name) for name in _CONTENTS) or choice.get("logprobs"):
        return True
    return choice.get("finish_reason") is None and "role" not in parts


def _shown(text: bytes) -> str:
    return " ".join(text[: 4 * _MOST_CHARACTERS].decode(errors="replace").split())[:_MOST_CHARACTERS]
