"""Noticing that the caller has left."""

from __future__ import annotations

from starlette.types import Receive


class ClientGone(Exception):
    """The caller closed the connection: nobody is left to answer."""


async def until_disconnect(receive: Receive) -> None:
    """Return when the caller has left. The body must have been read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
