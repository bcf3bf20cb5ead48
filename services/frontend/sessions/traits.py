"""What callers set of a session, from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from services.chassis.errors import InvalidRequest
from services.frontend.context_policy import parse_context_policy
from services.frontend.fields import Fields
from services.frontend.model_name import MAX_MODEL_CHARS
from services.frontend.sessions.session import (
    MAX_METADATA_ENTRIES,
    MAX_METADATA_NAME_CHARS,
    MAX_METADATA_VALUE_CHARS,
    MAX_SYSTEM_CHARS,
    MAX_TITLE_CHARS,
    MAX_TTL_SECONDS,
    Traits,
)

NAMES = ("title", "model", "system", "context_policy", "ttl_seconds", "metadata")


def parse_traits(fields: Fields) -> Traits:
    """Read all traits; what is absent, null or empty is not set.

    Raises:
        InvalidRequest: one has a wrong type, is out of range, or is unknown.
    """
    return Traits(
        title=fields.string("title", MAX_TITLE_CHARS) or None,
        model=fields.string("model", MAX_MODEL_CHARS) or None,
        system=fields.string("system", MAX_SYSTEM_CHARS) or None,
        context_policy=parse_context_policy(fields),
        ttl_seconds=fields.integer("ttl_seconds", 1, MAX_TTL_SECONDS),
        metadata=_parse_metadata(fields),
    )


def parse_changes(fields: Fields) -> Callable[[Traits], Traits]:
    """Read changes: a trait that is absent stays, and null takes it away.

    Raises:
        InvalidRequest: one has a wrong type or is out of range.
    """
    traits = parse_traits(fields)
    changes: Mapping[str, Any] = {name: getattr(traits, name) for name in NAMES if name in set(fields)}
    return lambda before: replace(before, **changes)


def refuse_others(fields: Fields, allowed: tuple[str, ...]) -> None:
    """Refuse members that have no effect.

    Raises:
        InvalidRequest: there is one.
    """
    if any(name not in allowed for name in fields):
        raise InvalidRequest(f"there is a member that has no effect here; allowed are {', '.join(allowed)}")


def _parse_metadata(fields: Fields) -> dict[str, str]:
    given = fields.nested("metadata")
    if given is None:
        return {}
    path = fields.path("metadata")
    if len(given) > MAX_METADATA_ENTRIES:
        raise InvalidRequest(f"{path} may have at most {MAX_METADATA_ENTRIES} members", param=path)
    parsed: dict[str, str] = {}
    for name in given:
        value = given.value(name)
        if (
            not 1 <= len(name) <= MAX_METADATA_NAME_CHARS
            or not isinstance(value, str)
            or len(value) > MAX_METADATA_VALUE_CHARS
        ):
            raise InvalidRequest(
                f"{path} must hold strings of at most {MAX_METADATA_VALUE_CHARS} characters under names of 1 to"
                f" {MAX_METADATA_NAME_CHARS}",
                param=path,
            )
        parsed[name] = value
    return parsed
