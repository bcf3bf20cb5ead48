"""JSON for requests: what one reader could take for another thing than the next is refused.

https://www.rfc-editor.org/rfc/rfc8259 leaves duplicate names and large numbers
to each implementation; here both are errors. All work is linear in the text.
"""

from __future__ import annotations

from typing import Any

import orjson

from services.chassis.errors import InvalidRequest, TooLarge

MAX_DEPTH = 64
# A value takes up to 64 bytes of memory for 2 bytes of text, and a list or object more.
MAX_VALUES = 2_000_000
MAX_CONTAINERS = 100_000

# What C code does to one piece is all that keeps other threads waiting.
_PIECE_BYTES = 256 * 1024
_FIRST_TOO_LARGE = float(2**63)


def parse_object(body: bytes, subject: str = "the body") -> dict[str, Any]:
    """Parse a JSON object.

    Args:
        subject: what the errors call it.

    Raises:
        InvalidRequest: it is not JSON, not an object, nested too deep, or has a
            duplicate name or a number beyond 64 bits.
        TooLarge: it has too many values.
    """
    if not body:
        raise InvalidRequest(f"{subject} is empty; send a JSON object")
    names = _count_names(body, subject)
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"{subject} is not valid JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise InvalidRequest(f"{subject} must be a JSON object")
    if _check(parsed, subject) != names:
        raise InvalidRequest(f"{subject} has an object that gives one name twice; give each name once")
    return parsed


def _count_names(body: bytes, subject: str) -> int:
    """Count names in all objects: each has one colon outside of strings, duplicates too."""
    names = values = containers = 0
    in_string = 0
    carry = b""
    for start in range(0, len(body), _PIECE_BYTES):
        piece = carry + body[start : start + _PIECE_BYTES]
        carry = b""
        if b"\\" in piece:
            piece = piece.replace(rb"\\", b"")
            if piece.endswith(b"\\"):
                piece, carry = piece[:-1], b"\\"
            piece = piece.replace(rb"\"", b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[in_string::2])
        in_string = (in_string + len(parts) - 1) % 2
        names += outside.count(b":")
        containers += outside.count(b"{") + outside.count(b"[")
        values += outside.count(b",")
        if values > MAX_VALUES or containers > MAX_CONTAINERS:
            raise TooLarge(
                f"{subject} may hold at most {MAX_VALUES} values and {MAX_CONTAINERS} lists and objects; send less"
            )
    return names


def _check(parsed: dict[str, Any], subject: str) -> int:
    """Check depth and numbers; return how many names there are."""
    names = 0
    level: list[Any] = [parsed]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for container in level:
            if isinstance(container, dict):
                names += len(container)
            for value in container.values() if isinstance(container, dict) else container:
                if isinstance(value, (dict, list)):
                    deeper.append(value)
                # The parser turns an integer beyond 64 bits into such a float.
                elif isinstance(value, float) and abs(value) >= _FIRST_TOO_LARGE:
                    raise InvalidRequest(f"{subject} has a number beyond 64 bits; integers may have 64 bits at most")
        if not deeper:
            return names
        level = deeper
    raise InvalidRequest(f"{subject} is nested more than {MAX_DEPTH} deep")
