"""What a session is: a tree of messages with a head, and what all its turns have in common."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal["complete", "partial", "running"]

MAX_SESSIONS_PER_OWNER = 10_000
MAX_SESSION_MESSAGES = 2000
# Messages after one, or first ones: each of them tells the ids of all.
MAX_SIBLINGS = 128
# Of all texts of a session's messages, in UTF-8.
MAX_SESSION_BYTES = 8 * 1024 * 1024
MAX_TITLE_CHARS = 200
MAX_SYSTEM_CHARS = 65_536
MAX_SUMMARY_CHARS = 65_536
MAX_TTL_SECONDS = 10 * 365 * 86_400
MAX_METADATA_ENTRIES = 16
MAX_METADATA_NAME_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512
# Of a title that is taken from a message.
TAKEN_TITLE_CHARS = 60


@dataclass(frozen=True, slots=True)
class Traits:
    """What callers set of a session."""

    title: str | None = None
    model: str | None = None
    system: str | None = None
    context_policy: str | None = None
    ttl_seconds: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """A session. Times are Unix seconds.

    Args:
        owner: whose it is.
        taken_title: from its first message; it is shown where `traits` has none.
        head: the message that the next one follows.
        summary: of the messages up to `summary_upto`, that one included.
        busy: whether a turn is under way.
    """

    id: str
    owner: str
    traits: Traits
    created_at: float
    updated_at: float
    expires_at: float | None = None
    taken_title: str | None = None
    head: str | None = None
    summary: str | None = None
    summary_upto: str | None = None
    message_count: int = 0
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an answer.

    Args:
        tool_calls: the calls as OpenAI's objects.
        usage: OpenAI's usage object.
        stats: `ttft_ms` and `tokens_per_second`.
        context: what was left out of the conversation for this answer.
        findings: what filters and format checks found.
    """

    status: Status
    content: str = ""
    reasoning: str = ""
    tool_calls: Sequence[Mapping[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    model: str | None = None
    usage: Mapping[str, Any] | None = None
    stats: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    findings: Mapping[str, Any] | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of its texts and of what else has no bound of its own."""
        objects = (*self.tool_calls, self.usage, self.stats, self.context, self.findings)
        return _bytes_of(self.content, self.reasoning, self.model, *(str(each) for each in objects if each))


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a session.

    Args:
        parent_id: the message before it; None for a first one.
        parts: its text parts, where it was given in parts; `content` then joins them.
        outcome: of an answer; that of other messages is complete and holds their content.
        siblings: ids of all messages with this parent, its own included, oldest first. Filled in by reading.
    """

    id: str
    parent_id: str | None
    role: str
    outcome: Outcome
    created_at: float
    parts: Sequence[str] | None = None
    name: str | None = None
    tool_call_id: str | None = None
    siblings: Sequence[str] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of its texts and of what else has no bound of its own."""
        return self.outcome.size_bytes + _bytes_of(self.name, self.tool_call_id, *(self.parts or ()))


@dataclass(frozen=True, slots=True)
class Page:
    """Some sessions, newest first, and whether more follow."""

    sessions: Sequence[Session]
    has_more: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that begins: new messages, each the child of the one before, and the answer under the last of them.

    Args:
        holder: names the turn in the session's lease.
        parent_id: the message that the first new message, or else the answer, follows.
        expected_head: the session's head when the turn was planned; a turn that came between moved it.
    """

    session_id: str
    holder: str
    parent_id: str | None
    expected_head: str | None
    messages: Sequence[StoredMessage]
    answer: StoredMessage


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the messages up to one, that one included."""

    text: str
    upto: str


def new_session_id() -> str:
    """Return an id for a session."""
    return f"sess_{uuid.uuid4().hex}"


def new_message_id() -> str:
    """Return an id for a message."""
    return f"msg_{uuid.uuid4().hex}"


def new_holder() -> str:
    """Return a name for a turn in a lease."""
    return uuid.uuid4().hex


def title_of(text: str) -> str | None:
    """Return a title taken from a message's text, or None where it has none."""
    return " ".join(text[: 4 * TAKEN_TITLE_CHARS].split())[:TAKEN_TITLE_CHARS].strip() or None


def _bytes_of(*texts: str | None) -> int:
    return sum(len(text.encode()) for text in texts if text)
