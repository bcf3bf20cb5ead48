"""Writing a piece of a response that has begun at once, in the pass that made it.

ASGI's `send` is a coroutine, so a piece that goes through it wakes a task: 5 µs for each token of each stream. A server
that can write without waiting leaves a function for that in the scope, as ASGI's extensions are left there:
https://asgi.readthedocs.io/en/latest/specs/main.html#extensions
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import Scope

WriteNow = Callable[[bytes], bool]
"""Writes a piece of the body, after all that `send` was awaited for. Returns False when it cannot be written without
waiting: nothing was written, and the piece must go through `send`."""

_EXTENSION = "streamomni.write_now"


def offer(scope: Scope, write_now: WriteNow) -> None:
    """Leave the server's function in a request's scope."""
    scope.setdefault("extensions", {})[_EXTENSION] = {"write": write_now}


def write_now_of(scope: Scope) -> WriteNow:
    """Return the server's function, or one that never writes where the server has none."""
    extension = scope.get("extensions", {}).get(_EXTENSION)
    return _never if extension is None else extension["write"]


def _never(_: bytes) -> bool:
    return False
