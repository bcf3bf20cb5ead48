"""The sessions that a service keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from services.cli.service_client import ServiceClient
from services.cli.service_failure import Refused, ServiceFailure

Session = Mapping[str, Any]

# Most entries that one request lists.
_PAGE = 100
# Not there, not for this method, not built, or out of order: a conversation can go on without the service's memory.
_UNAVAILABLE = (404, 405, 501, 503)


class SessionsUnavailable(ServiceFailure):
    """The service keeps no sessions, or cannot at the moment."""


class SessionsClient:
    """The sessions of one service that belong to the client's key. All methods raise what `ServiceClient.ask` does."""

    def __init__(self, client: ServiceClient) -> None:
        self._client = client

    async def create(self, wanted: Mapping[str, Any]) -> Session:
        """Make a session with the given fields (`title`, `model`, `system`, `context_policy`, …).

        Raises:
            SessionsUnavailable: the service keeps none.
        """
        try:
            return await self._client.ask("POST", "/v1/sessions", wanted)
        except Refused as refused:
            if refused.status in _UNAVAILABLE:
                raise SessionsUnavailable(str(refused)) from refused
            raise

    async def listed(self, most: int, query: str | None = None) -> Sequence[Session]:
        """Return up to `most` sessions, newest first; with a query those whose title or text holds it."""
        found: list[Session] = []
        params: dict[str, str | int] = {} if query is None else {"q": query}
        while len(found) < most:
            params["limit"] = min(most - len(found), _PAGE)
            page = await self._client.ask("GET", "/v1/sessions", params=params)
            found += _entries(page)
            if not page.get("has_more") or not page.get("last_id"):
                break
            params["after"] = str(page["last_id"])
        return found

    async def get(self, session_id: str) -> Session:
        """Return a session."""
        return await self._client.ask("GET", _path(session_id))

    async def change(self, session_id: str, changes: Mapping[str, Any]) -> Session:
        """Set fields of a session and return it."""
        return await self._client.ask("PATCH", _path(session_id), changes)

    async def delete(self, session_id: str) -> None:
        """Delete a session with all its messages."""
        await self._client.ask("DELETE", _path(session_id))

    async def messages(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Return the messages on the way to the session's head, oldest first."""
        return _entries(await self._client.ask("GET", f"{_path(session_id)}/messages"))

    async def exported(self, session_id: str) -> Mapping[str, Any]:
        """Return a session with all its messages as one document."""
        return await self._client.ask("GET", f"{_path(session_id)}/export")

    async def import_document(self, document: Mapping[str, Any]) -> Session:
        """Make a session of an exported document and return it; its ids are new."""
        return await self._client.ask("POST", "/v1/sessions/import", document)


def _path(session_id: str) -> str:
    return f"/v1/sessions/{quote(session_id, safe='')}"


def _entries(page: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    entries = page.get("data")
    if not isinstance(entries, list):
        raise ServiceFailure("the service gives no list; is this the service's URL?")
    return entries
