"""What the terminal relies on in a service's sessions, of the real frontend and of the one that its tests talk to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.cli.chat.answer import Answer
from services.cli.chat.history import NothingAsked, Turn
from services.cli.chat.session_history import SessionHistory
from services.cli.service_client import ChatOptions, ServiceClient
from services.cli.sessions_client import SessionsClient
from tests.cli.scripted_http import chat_server
from tests.cli.scripted_sessions import Sessions
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import running_frontend, until_ready


@pytest.fixture(params=["real", "scripted"])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServiceClient]:
    """A service that keeps sessions."""
    if request.param == "scripted":
        with chat_server("scripted", sessions=Sessions()) as server:
            yield ServiceClient(server.url)
        return
    async with ScriptedTextService().serve() as port, running_frontend(port, state_dir=tmp_path) as frontend:
        await until_ready(frontend)
        yield ServiceClient(frontend.url)


async def answer_to(client: ServiceClient, history: SessionHistory, turn: Turn) -> Answer:
    """The answer to a turn, which the history then knows of."""
    answer = Answer()
    async for piece in client.chat(turn, ChatOptions((await client.model_names())[0])):
        answer.take(piece)
    history.keep(turn, answer)
    return answer


def texts(messages: Any, role: str) -> list[str]:
    """What one side said."""
    return [message["content"] for message in messages if message["role"] == role]


async def test_turns_of_a_session(client: ServiceClient) -> None:
    """The first turn makes the session; each sends what is new, and the answer names the session and is kept."""
    sessions = SessionsClient(client)
    history = SessionHistory(sessions, {"model": "scripted", "system": "Be brief."})
    with pytest.raises(NothingAsked):
        await history.again()
    answer = await answer_to(client, history, await history.next_turn("one"))
    assert answer.session is not None
    assert answer.session["id"] == history.session_id
    await answer_to(client, history, await history.next_turn("two"))
    messages = await history.messages()
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "assistant"]
    assert texts(messages, "user") == ["one", "two"]
    assert texts(messages, "assistant")[0] == answer.text
    (listed,) = await sessions.listed(5)
    assert (listed["id"], listed["title"], listed["system"]) == (history.session_id, "one", "Be brief.")


async def test_answering_again_and_asking_otherwise(client: ServiceClient) -> None:
    """Another answer and another question stand in place of the last ones, also where those were the first."""
    history = SessionHistory(SessionsClient(client), {"model": "scripted"})
    await answer_to(client, history, await history.next_turn("one"))
    await answer_to(client, history, await history.again())
    assert texts(await history.messages(), "user") == ["one"]
    assert len(await history.messages()) == 2
    await answer_to(client, history, await history.instead("first"))
    assert texts(await history.messages(), "user") == ["first"]
    await answer_to(client, history, await history.next_turn("two"))
    await answer_to(client, history, await history.instead("second"))
    assert texts(await history.messages(), "user") == ["first", "second"]
    assert await history.last_question() == "second"


async def test_session_is_found_again_changed_and_taken_elsewhere(client: ServiceClient) -> None:
    """A session is gone on with by its id, with its system prompt, and a copy of it is imported."""
    sessions = SessionsClient(client)
    history = SessionHistory(sessions, {"model": "scripted"})
    await answer_to(client, history, await history.next_turn("one"))
    await history.set_system("Be brief.")
    found = SessionHistory(sessions, session=await sessions.get(str(history.session_id)))
    assert (found.system, found.model) == ("Be brief.", "scripted")
    await found.set_system(None)
    assert (await sessions.get(str(history.session_id)))["system"] is None
    copy = await sessions.import_document(await sessions.exported(str(history.session_id)))
    assert copy["id"] != history.session_id
    assert texts(await sessions.messages(str(copy["id"])), "user") == ["one"]
    await sessions.delete(str(history.session_id))
    assert [session["id"] for session in await sessions.listed(5)] == [copy["id"]]
