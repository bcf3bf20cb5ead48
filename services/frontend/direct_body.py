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


def offer(scope: Scope, write_now: WriteNow, gather_now: WriteNow | None = None) -> None:
    """Leave the server's functions in a request's scope.

    Args:
        gather_now: as `write_now`, but writes at the end of the event loop's pass what came in it, all at once.
    """
    scope.setdefault("extensions", {})[_EXTENSION] = {"write": write_now, "gather": gather_now or write_now}


def write_now_of(scope: Scope, choices: int = 1) -> WriteNow:
    """Return the server's function, or one that never writes where the server has none.

    Args:
        choices: of the answer. Those of several come in one pass, and each write is a call of the kernel, so they are
            written together.
    """
    extension = scope.get("extensions", {}).get(_EXTENSION)
    return _never if extension is None else extension["write" if choices == 1 else "gather"]


def _never(_: bytes) -> bool:
    return False
