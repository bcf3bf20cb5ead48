"""A service's sessions, over real HTTP."""

from __future__ import annotations

import pytest

from services.cli.service_client import ServiceClient
from services.cli.service_failure import Refused
from services.cli.sessions_client import SessionsClient, SessionsUnavailable
from tests.cli.scripted_http import REQUEST_ID, chat_server
from tests.cli.scripted_sessions import Sessions


async def test_list_goes_on_to_the_next_page() -> None:
    """More sessions than a page holds are all listed, newest first and up to the number that is asked for."""
    kept = Sessions()
    made = [kept.respond("POST", "/v1/sessions", {"title": f"t{number}"}, {})[1]["id"] for number in range(130)]
    with chat_server("tiny", sessions=kept) as server:
        sessions = SessionsClient(ServiceClient(server.url))
        assert [session["id"] for session in await sessions.listed(1000)] == made[::-1]
        assert [session["id"] for session in await sessions.listed(101)] == made[:28:-1]
        assert [session["title"] for session in await sessions.listed(5, "t12")] == [
            "t129",
            "t128",
            "t127",
            "t126",
            "t125",
        ]


async def test_session_is_changed_exported_imported_and_deleted() -> None:
    """Each does what it says; what is gone is refused with the service's words."""
    with chat_server("tiny", sessions=Sessions()) as server:
        sessions = SessionsClient(ServiceClient(server.url))
        made = (await sessions.create({"title": "one"}))["id"]
        assert (await sessions.change(made, {"title": "two"}))["title"] == "two"
        copy = (await sessions.import_document(await sessions.exported(made)))["id"]
        assert copy != made
        assert (await sessions.get(copy))["title"] == "two"
        await sessions.delete(made)
        with pytest.raises(Refused, match=f"no such session .request {REQUEST_ID}") as caught:
            await sessions.get(made)
        assert caught.value.status == 404


async def test_service_without_sessions_is_told_apart() -> None:
    """A service that keeps none says so by its status, and that is not a failure like others."""
    with chat_server("tiny") as server, pytest.raises(SessionsUnavailable):
        await SessionsClient(ServiceClient(server.url)).create({})
