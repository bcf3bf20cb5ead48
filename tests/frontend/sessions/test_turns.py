"""Turns of sessions in /v1/chat/completions: what is sent to the model, answered and kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.chassis.errors import InvalidRequest
from streamomni.engine.v1 import sampling_pb2
from streamomni.text.v1 import chat_pb2, text_pb2
from tests.fakes.scripted_text_service import Event, ScriptedTextService, finished, started
from tests.frontend.conftest import Starter
from tests.frontend.requests import CHAT, COMPLETIONS, completion, error_of, events, texts
from tests.frontend.sessions.turn_calls import SESSIONS, asked, create, kept, said, take_turn, turn


@pytest.fixture
async def client(start: Starter, tmp_path: Path) -> httpx.AsyncClient:
    """A client of a frontend that keeps sessions."""
    return (await start(state_dir=tmp_path / "state")).client


async def test_whole_answers(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """Only what is new is sent, the model gets the whole conversation, and the answer tells what was kept where."""
    session_id = await create(client, system="Be brief.")
    first = await take_turn(client, session_id, "one two")
    second = await take_turn(client, session_id, "three")
    assert second["choices"][0]["message"]["content"] == "three "
    assert asked(service.requests[0]) == [("system", "Be brief."), ("user", "one two")]
    history = [("system", "Be brief."), ("user", "one two"), ("assistant", "one two "), ("user", "three")]
    assert asked(service.requests[1]) == history
    messages = await kept(client, session_id)
    assert said(messages) == [
        ("user", "one two", "complete"),
        ("assistant", "one two ", "complete"),
        ("user", "three", "complete"),
        ("assistant", "three ", "complete"),
    ]
    for answer, (question, said_back) in zip((first, second), (messages[:2], messages[2:]), strict=True):
        told = {"id": session_id, "message_ids": [question["id"]], "answer_id": said_back["id"]}
        assert answer["session"] == told
        assert said_back["usage"] == answer["usage"]
        assert (said_back["finish_reason"], said_back["model"]) == ("stop", "scripted")
        assert said_back["stats"]["ttft_ms"] > 0
    session = (await client.get(f"{SESSIONS}/{session_id}")).json()
    assert (session["title"], session["message_count"], session["head"]) == ("one two", 4, messages[3]["id"])


async def test_streams(client: httpx.AsyncClient) -> None:
    """A streamed turn tells its messages in the first chunk alone, and is kept when its end is read."""
    session_id = await create(client)
    request = turn(session_id, "one two three", stream=True, stream_options={"include_usage": True})
    response = await client.post(CHAT, json=request)
    chunks = events(response.text)
    assert chunks.pop() == "[DONE]"
    assert texts(chunks) == "one two three "
    question, answer = await kept(client, session_id)
    assert chunks[0]["session"] == {"id": session_id, "message_ids": [question["id"]], "answer_id": answer["id"]}
    assert all("session" not in chunk for chunk in chunks[1:])
    assert (answer["content"], answer["status"], answer["usage"]) == ("one two three ", "complete", chunks[-1]["usage"])


async def test_requests_without_a_session(client: httpx.AsyncClient) -> None:
    """A request that names no session is answered as ever, and nothing is kept of it."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "x"}], "session_id": None}
    assert "session" not in (await client.post(CHAT, json=body)).json()
    assert (await client.get(SESSIONS)).json()["data"] == []


async def test_variants_and_edits(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A user's message gets another answer, an edited one becomes its sibling, and a branch can be chosen."""
    session_id = await create(client)
    first = await take_turn(client, session_id, "one")
    question = first["session"]["message_ids"][0]
    variant = await take_turn(client, session_id, parent_message_id=question)
    assert variant["session"]["message_ids"] == []
    assert asked(service.requests[-1]) == [("user", "one")]
    messages = await kept(client, session_id)
    assert messages[1]["siblings"] == [first["session"]["answer_id"], variant["session"]["answer_id"]]
    edited = await take_turn(client, session_id, "eins", parent_message_id=None)
    assert asked(service.requests[-1]) == [("user", "eins")]
    (root, _) = await kept(client, session_id)
    assert root["siblings"] == [question, edited["session"]["message_ids"][0]]
    await client.patch(f"{SESSIONS}/{session_id}", json={"head": first["session"]["answer_id"]})
    await take_turn(client, session_id, "two")
    assert asked(service.requests[-1]) == [("user", "one"), ("assistant", "one "), ("user", "two")]
    assert len(await kept(client, session_id, all="true")) == 7


async def test_continued_answer(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A cut answer goes on: the model continues its text, and the new sibling holds the old and the new."""
    session_id = await create(client)
    cut = await take_turn(client, session_id, "one two three", max_tokens=2)
    assert cut["choices"][0]["finish_reason"] == "length"
    on = await take_turn(client, session_id, continue_message_id=cut["session"]["answer_id"])
    request = service.requests[-1]
    assert asked(request) == [("user", "one two three"), ("assistant", "one two ")]
    assert request.chat.continue_final_message
    # The scripted model says the last message back.
    assert on["choices"][0]["message"]["content"] == "one two "
    question, whole = await kept(client, session_id)
    assert (whole["content"], whole["parent_id"]) == ("one two one two ", question["id"])
    assert whole["siblings"] == [cut["session"]["answer_id"], on["session"]["answer_id"]]


async def test_tools_and_reasoning(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """Calls and reasoning are kept, and a tool's answer is a turn that goes on from them."""

    async def calling(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        yield started(request)
        yield text_pb2.Delta(token_ids=[1], reasoning="because")
        piece = chat_pb2.ToolCallDelta(index=0, id="call_1", name="f", arguments_json='{"a":')
        yield text_pb2.Delta(token_ids=[2], tool_calls=[piece])
        yield text_pb2.Delta(token_ids=[3], tool_calls=[chat_pb2.ToolCallDelta(index=0, arguments_json="1}")])
        yield finished(3, reason=sampling_pb2.FINISH_REASON_TOOL_CALLS)

    session_id = await create(client)
    echo, service.script = service.script, calling
    await take_turn(client, session_id, "call it")
    service.script = echo
    result = {"role": "tool", "tool_call_id": "call_1", "content": "42"}
    answer = await client.post(CHAT, json={"session_id": session_id, "messages": [result]})
    assert answer.status_code == 200, answer.text
    sent = service.requests[-1].chat.messages
    assert [(call.id, call.name, call.arguments_json) for call in sent[1].tool_calls] == [("call_1", "f", '{"a":1}')]
    assert (sent[1].reasoning, sent[2].role, sent[2].tool_call_id) == ("because", "tool", "call_1")
    called = (await kept(client, session_id))[1]
    function = {"name": "f", "arguments": '{"a":1}'}
    assert called["tool_calls"] == [{"id": "call_1", "type": "function", "function": function}]
    assert (called["reasoning"], called["finish_reason"]) == ("because", "tool_calls")


async def test_parts_and_names(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A message that was given in parts, and its author's name, reach the model in later turns as in the first."""
    session_id = await create(client)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    message = {"role": "user", "content": parts, "name": "ada"}
    assert (await client.post(CHAT, json={"session_id": session_id, "messages": [message]})).status_code == 200
    await take_turn(client, session_id, "next")
    first, later = (request.chat.messages[0] for request in service.requests)
    assert first == later
    assert [part.text for part in later.parts.parts] == ["a", "b"]
    question = (await kept(client, session_id))[0]
    assert (question["content"], question["parts"], question["name"]) == ("a\nb", ["a", "b"], "ada")


async def test_presets(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A preset is put to what the model gets; what was typed is what is kept."""
    session_id = await create(client)
    await take_turn(client, session_id, "Hallo", preset="translate", preset_variables={"target_language": "English"})
    sent = str(asked(service.requests[-1]))
    assert "Hallo" in sent and "English" in sent
    assert (await kept(client, session_id))[0]["content"] == "Hallo"


async def test_the_session_s_defaults(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """Model and context policy are the session's, unless the request has its own."""
    session_id = await create(client, context_policy="sliding_window")
    await take_turn(client, session_id, "one")
    kinds = chat_pb2.ContextPolicy
    assert service.requests[-1].chat.context_policy.kind == kinds.KIND_SLIDING_WINDOW
    await take_turn(client, session_id, "two", context_policy="error")
    assert service.requests[-1].chat.context_policy.kind == kinds.KIND_ERROR
    response = await client.post(CHAT, json=turn(session_id, "three", model="other"))
    assert (response.status_code, error_of(response)["param"]) == (404, "model")
    await client.patch(f"{SESSIONS}/{session_id}", json={"model": None})
    response = await client.post(CHAT, json=turn(session_id, "three"))
    assert (response.status_code, error_of(response)["param"]) == (400, "model")
    assert len(await kept(client, session_id)) == 4


async def test_summary(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """What the tokenizer summed up is kept, and the next turn sends the summary and what came after it."""

    async def summing(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        begun = started(request)
        begun.context.policy = chat_pb2.ContextPolicy.KIND_SUMMARIZE
        begun.context.dropped_messages, begun.context.dropped_tokens = 2, 9
        begun.context.summary = "they counted"
        yield begun
        yield text_pb2.Delta(token_ids=[1], text="4")
        yield finished(1)

    session_id = await create(client, context_policy="summarize", system="s")
    await take_turn(client, session_id, "1")
    echo, service.script = service.script, summing
    answer = await take_turn(client, session_id, "3")
    assert answer["context"]["summary"] == "they counted"
    service.script = echo
    session = (await client.get(f"{SESSIONS}/{session_id}")).json()
    assert session["summary"] == "they counted"
    messages = await kept(client, session_id)
    assert messages[3]["context"] == answer["context"]
    await take_turn(client, session_id, "5")
    request = service.requests[-1]
    assert asked(request) == [("system", "s"), ("user", "3"), ("assistant", "4"), ("user", "5")]
    assert request.chat.context_policy.summary == "they counted"
    # A branch that leaves before the summary's end has nothing of it, and another policy needs all messages.
    await take_turn(client, session_id, "2", parent_message_id=None)
    assert asked(service.requests[-1]) == [("system", "s"), ("user", "2")]
    assert service.requests[-1].chat.context_policy.summary == ""
    # So has an answer that is itself the summary's last message, when it is to go on.
    await take_turn(client, session_id, continue_message_id=messages[1]["id"])
    assert [role for role, _ in asked(service.requests[-1])] == ["system", "user", "assistant"]
    assert service.requests[-1].chat.context_policy.summary == ""
    await client.patch(f"{SESSIONS}/{session_id}", json={"head": messages[3]["id"]})
    await take_turn(client, session_id, "6", context_policy="sliding_window")
    assert [role for role, _ in asked(service.requests[-1])] == ["system", *("user", "assistant") * 2, "user"]


@pytest.mark.parametrize(
    ("fields", "param", "status"),
    [
        ({"session_id": 1}, "session_id", 400),
        ({"session_id": "sess_unknown"}, "session_id", 404),
        ({"parent_message_id": "msg_unknown"}, "parent_message_id", 404),
        ({"parent_message_id": 1}, "parent_message_id", 400),
        ({"continue_message_id": "msg_unknown", "messages": []}, "continue_message_id", 404),
        ({"continue_message_id": "msg_unknown"}, "continue_message_id", 400),
        ({"messages": []}, "messages", 400),
        ({"messages": None}, "messages", 400),
        ({"messages": {}}, "messages", 400),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages[0].role", 400),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role", 400),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content", 400),
        ({"messages": ["x"]}, "messages[0]", 400),
        ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, "messages[0].tool_call_id", 400),
        ({"n": 2}, "n", 400),
        ({"continue_final_message": True}, "continue_final_message", 400),
        ({"temperature": 3}, "temperature", 400),
        ({"preset": "unknown"}, "preset", 400),
    ],
)
async def test_refused_turns(
    client: httpx.AsyncClient, service: ScriptedTextService, fields: dict[str, Any], param: str, status: int
) -> None:
    """A turn that cannot be meant is refused by the name of its field as it was sent, and nothing of it is kept."""
    session_id = await create(client, system="s")
    await take_turn(client, session_id, "one")
    before = (await client.get(f"{SESSIONS}/{session_id}/export")).json()
    response = await client.post(CHAT, json=turn(session_id, "x") | fields)
    assert response.status_code == status, response.text
    assert error_of(response)["param"] == param
    assert (await client.get(f"{SESSIONS}/{session_id}/export")).json() == before
    assert len(service.requests) == 1


async def test_fields_without_a_session(client: httpx.AsyncClient) -> None:
    """Fields of turns are refused where they can have no effect."""
    body = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
    for name in ("parent_message_id", "continue_message_id"):
        response = await client.post(CHAT, json=body | {name: "msg_x"})
        assert (response.status_code, error_of(response)["param"]) == (400, name)
    response = await client.post(COMPLETIONS, json=completion("x", session_id="sess_x"))
    assert (response.status_code, error_of(response)["param"]) == (400, "session_id")


async def test_refused_by_the_text_service(client: httpx.AsyncClient, service: ScriptedTextService) -> None:
    """A turn that the model never began is taken back, streamed or not: it may be sent again as it was."""

    async def refusing(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
        if request.HasField("chat"):
            raise InvalidRequest("the prompt is too long", param="prompt", reason="CONTEXT_LENGTH_EXCEEDED")
        yield started(request)

    session_id = await create(client)
    echo, service.script = service.script, refusing
    for stream in (False, True):
        response = await client.post(CHAT, json=turn(session_id, "one", stream=stream))
        assert (response.status_code, error_of(response)["code"]) == (400, "context_length_exceeded")
        session = (await client.get(f"{SESSIONS}/{session_id}")).json()
        assert (session["message_count"], session["head"], session["busy"]) == (0, None, False)
    service.script = echo
    await take_turn(client, session_id, "one")
    assert len(await kept(client, session_id)) == 2


async def test_other_keys(start: Starter, tmp_path: Path) -> None:
    """A turn in another key's session is a turn in none."""
    keys = tmp_path / "keys"
    keys.write_text("key-one\nkey-two\n")
    client = (await start(state_dir=tmp_path, api_keys_file=keys)).client
    one, two = ({"Authorization": f"Bearer key-{name}"} for name in ("one", "two"))
    session_id = (await client.post(SESSIONS, json={"model": "scripted"}, headers=one)).json()["id"]
    response = await client.post(CHAT, json=turn(session_id, "x"), headers=two)
    assert (response.status_code, error_of(response)["code"]) == (404, "session_not_found")
    assert (await client.post(CHAT, json=turn(session_id, "x"), headers=one)).status_code == 200


async def test_no_sessions(start: Starter) -> None:
    """A turn of a session is refused where none are kept."""
    response = await (await start()).client.post(CHAT, json=turn("sess_x", "x"))
    assert (response.status_code, error_of(response)["code"]) == (404, "sessions_disabled")
