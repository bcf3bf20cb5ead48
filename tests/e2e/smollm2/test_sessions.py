"""Sessions on the running service."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import httpx

from services.frontend.sessions.port import LEASE_SECONDS
from tests.e2e.service import Service, wait_until

CHAT = "/v1/chat/completions"


def create(service: Service, **fields: Any) -> str:
    """Make a session and return its id."""
    made = httpx.post(f"{service.url}/v1/sessions", json={"model": service.model, **fields}, timeout=60)
    assert made.status_code == 201, made.text
    session_id: str = made.json()["id"]
    return session_id


def turn(session_id: str, text: str | None, **fields: Any) -> dict[str, Any]:
    """A body that asks for a turn of few tokens."""
    messages = [] if text is None else [{"role": "user", "content": text}]
    return {"session_id": session_id, "messages": messages, "temperature": 0, "max_tokens": 8, **fields}


def ask(service: Service, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a turn."""
    response = httpx.post(service.url + CHAT, json=body, timeout=60)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def kept(service: Service, session_id: str) -> list[dict[str, Any]]:
    """The messages on the path to the head."""
    messages: list[dict[str, Any]] = httpx.get(f"{service.url}/v1/sessions/{session_id}/messages").json()["data"]
    return messages


def test_history_is_the_server_s(service: Service) -> None:
    """Turns of a session get the very answers that whole conversations get, as the prompts are the same."""
    session_id = create(service, system="You are a pirate.")
    whole: list[dict[str, Any]] = [{"role": "system", "content": "You are a pirate."}]
    for text in ("Who are you?", "Where do you sail?"):
        answer = ask(service, turn(session_id, text))
        whole.append({"role": "user", "content": text})
        plain = {"model": service.model, "messages": whole, "temperature": 0, "max_tokens": 8}
        expected = ask(service, plain)
        assert answer["choices"] == expected["choices"]
        assert answer["usage"]["prompt_tokens"] == expected["usage"]["prompt_tokens"]
        whole.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
    assert [message["content"] for message in kept(service, session_id)] == [each["content"] for each in whole[1:]]


def test_a_cut_answer_goes_on(service: Service) -> None:
    """An answer that was cut at its length goes on where it ended, as if it had never been cut."""
    session_id = create(service)
    question = "Count from one to twenty in words."
    cut = ask(service, turn(session_id, question, max_tokens=4))
    assert cut["choices"][0]["finish_reason"] == "length"
    body = turn(session_id, None, continue_message_id=cut["session"]["answer_id"], max_tokens=4)
    ask(service, body)
    uncut = ask(service, turn(create(service), question))
    assert kept(service, session_id)[1]["content"] == uncut["choices"][0]["message"]["content"]


def test_leaving_keeps_a_partial_answer(service: Service) -> None:
    """A caller who leaves within the answer finds what there was of it, marked; meanwhile another turn got 409."""
    session_id = create(service)
    body = turn(session_id, "Tell me a long story.", stream=True, max_tokens=400, ignore_eos=True)
    with httpx.stream("POST", service.url + CHAT, json=body, timeout=60) as response:
        lines = (line for line in response.iter_lines() if '"content":"' in line)
        told = [next(lines) for _ in range(5)]
        second = httpx.post(service.url + CHAT, json=turn(session_id, "And?"))
        assert (second.status_code, second.json()["error"]["code"]) == (409, "session_busy")
    text = "".join(json.loads(line[6:])["choices"][0]["delta"]["content"] for line in told)
    wait_until(lambda: kept(service, session_id)[1]["status"] == "partial", 1, "the answer is not marked")
    assert kept(service, session_id)[1]["content"].startswith(text)
    ask(service, turn(session_id, "And?", max_tokens=2))
    wait_until(service.is_idle, 1, "the engine still works")


def test_kill_of_the_frontend(service: Service) -> None:
    """After kill -9 of the frontend every turn that was answered is there, and the one under way as partial; its
    session takes the next turn within seconds."""
    session_id = create(service)
    answered = ask(service, turn(session_id, "Name a colour."))
    body = turn(session_id, "Tell me a long story.", stream=True, max_tokens=400, ignore_eos=True)
    killed_at = 0.0
    try:
        with httpx.stream("POST", service.url + CHAT, json=body, timeout=60) as response:
            for line in response.iter_lines():
                if '"content":"' in line and not killed_at:
                    os.kill(service.process_ids("services.frontend")[0], signal.SIGKILL)
                    killed_at = time.monotonic()
    except httpx.TransportError:
        pass
    assert killed_at
    wait_until(lambda: _is_ready(service), 60, "not served again after the kill of the frontend")
    messages = kept(service, session_id)
    assert messages[1]["content"] == answered["choices"][0]["message"]["content"]
    assert [message["status"] for message in messages[:3]] == ["complete"] * 3
    assert messages[2]["content"] == "Tell me a long story."
    left = max(0.0, killed_at + LEASE_SECONDS - time.monotonic())
    wait_until(lambda: kept(service, session_id)[3]["status"] == "partial", left + 2, "the session is not free")
    ask(service, turn(session_id, "Go on.", max_tokens=2))
    wait_until(service.is_idle, 1, "the engine still works")


def _is_ready(service: Service) -> bool:
    try:
        return httpx.get(f"{service.url}/health/ready").status_code == 200
    except httpx.TransportError:
        return False
