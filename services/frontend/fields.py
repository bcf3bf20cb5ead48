"""Typed access to the members of a JSON object, with errors that name the member."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.chassis.errors import InvalidRequest

INT32 = 2**31 - 1
UINT32 = 2**32 - 1
INT64 = 2**63 - 1


class Fields:
    """Members of a JSON object. Each method returns None for one that is absent or null.

    Args:
        values: the object.
        prefix: where it lies in the request, such as `stream_options.`.
    """

    __slots__ = ("_prefix", "_values")

    def __init__(self, values: Mapping[str, Any], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def path(self, name: str) -> str:
        """Return the name of a member as the caller knows it."""
        return f"{self._prefix}{name}"

    def value(self, name: str) -> Any:
        """Return a member as it is."""
        return self._values.get(name)

    def boolean(self, name: str) -> bool | None:
        """Return a boolean.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Return an integer from `low` to `high`.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._wrong(name, f"an integer from {low} to {high}", value)
        return value

    def number(self, name: str, low: float, high: float, *, above: bool = False) -> float | None:
        """Return a number from `low`, or above it, to `high`.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self._values.get(name)
        if value is None:
            return None
        if (
            not isinstance(value, (int, float))
            or isinstance(value, bool)
            or not low <= value <= high
            or (above and value == low)
        ):
            bounds = f"above {low} and at most {high}" if above else f"from {low} to {high}"
            raise self._wrong(name, f"a number {bounds}", value)
        return float(value)

    def string(self, name: str, max_chars: int | None = None) -> str | None:
        """Return a string of at most `max_chars` characters.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self._values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        if value is not None and max_chars is not None and len(value) > max_chars:
            raise InvalidRequest(
                f"{self.path(name)} may have at most {max_chars} characters, but it has {len(value)}",
                param=self.path(name),
            )
        return value

    def nested(self, name: str) -> Fields | None:
        """Return an object.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, "an object", value)
        return Fields(value, f"{self.path(name)}.")

    def array(self, name: str, max_items: int) -> list[Any] | None:
        """Return a list of at most `max_items`.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._wrong(name, "a list", value)
        if len(value) > max_items:
            raise InvalidRequest(
                f"{self.path(name)} may have at most {max_items} members, but it has {len(value)}",
                param=self.path(name),
            )
        return value

    def token_ids(self, name: str, max_items: int) -> tuple[int, ...] | None:
        """Return a list of token ids. Whether the vocabulary has them is for the engine to say.

        Raises:
            InvalidRequest: it is something else.
        """
        value = self.array(name, max_items)
        return None if value is None else checked_token_ids(value, self.path(name))

    def _wrong(self, name: str, allowed: str, value: object) -> InvalidRequest:
        return InvalidRequest(f"{self.path(name)} must be {allowed}, but it is {shown(value)}", param=self.path(name))


def checked_token_ids(values: list[Any], path: str) -> tuple[int, ...]:
    """Check that all members are token ids.

    Raises:
        InvalidRequest: one is not.
    """
    for value in values:
        if type(value) is not int or not 0 <= value <= UINT32:
            raise InvalidRequest(
                f"{path} must hold token ids, integers from 0 to {UINT32}, but it holds {shown(value)}", param=path
            )
    return tuple(values)


def shown(value: object) -> str:
    """Name a JSON value in an error: numbers as they are, others by their kind, so that no text is repeated."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"
