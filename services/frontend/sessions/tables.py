"""The database's tables."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator


class Json(TypeDecorator[Any]):
    """A value as JSON text, so that any text can be kept: PostgreSQL's has no NUL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the text that is kept."""
        return None if value is None else orjson.dumps(value).decode()

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the value again."""
        return None if value is None else orjson.loads(value)


metadata = MetaData()

sessions = Table(
    "sessions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner", String(64), nullable=False),
    # Given, and taken from the first message where none is given.
    Column("title", Json),
    Column("taken_title", Json),
    # The title as it is searched.
    Column("folded_title", Text, nullable=False),
    Column("model", Json),
    Column("system", Json),
    Column("context_policy", String(32)),
    Column("ttl_seconds", BigInteger),
    Column("metadata", Json, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("head", String(64)),
    Column("summary", Json),
    Column("summary_upto", String(64)),
    Column("message_count", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("lease_holder", String(64)),
    Column("lease_until", Double, nullable=False),
    Index("sessions_by_owner", "owner", "updated_at"),
    Index("sessions_by_expiry", "expires_at"),
)

messages = Table(
    "messages",
    metadata,
    # Grows with each message, so that it tells their order.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", String(64), nullable=False, unique=True),
    Column("session_id", String(64), ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("parent_id", String(64)),
    Column("role", String(16), nullable=False),
    Column("content", Json, nullable=False),
    # The content as it is searched.
    Column("folded", Text, nullable=False),
    Column("reasoning", Json, nullable=False),
    Column("tool_calls", Json, nullable=False),
    Column("parts", Json),
    Column("name", Json),
    Column("tool_call_id", Json),
    Column("status", String(16), nullable=False),
    Column("finish_reason", String(32)),
    Column("model", Json),
    Column("usage", Json),
    Column("stats", Json),
    Column("context", Json),
    Column("findings", Json),
    Column("size_bytes", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    sqlite_autoincrement=True,
)


def folded(text: str) -> str:
    """Return a text as it is searched: without case, and in a form that any database keeps."""
    return orjson.dumps(text.casefold()).decode()[1:-1]
