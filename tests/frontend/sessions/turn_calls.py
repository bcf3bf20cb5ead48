"""Turns that tests take over HTTP, and what is kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx

from streamomni.text.v1 import text_pb2
from tests.fakes.scripted_text_service import Event, started
from tests.frontend.requests import CHAT

SESSIONS = "/v1/sessions"


async def create(client: httpx.AsyncClient, **fields: Any) -> str:
    """Make a session and return its id."""
    response = await client.post(SESSIONS, json={"model": "scripted", **fields})
    assert response.status_code == 201, response.text
    made: str = response.json()["id"]
    return made


def turn(session_id: str, *texts: str, **fields: Any) -> dict[str, Any]:
    """A body that asks for a turn."""
    messages = [{"role": "user", "content": text} for text in texts]
    return {"session_id": session_id, **({"messages": messages} if messages else {}), **fields}


async def take_turn(client: httpx.AsyncClient, session_id: str, *texts: str, **fields: Any) -> dict[str, Any]:
    """Take a turn and return the whole answer."""
    response = await client.post(CHAT, json=turn(session_id, *texts, **fields))
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def kept(client: httpx.AsyncClient, session_id: str, **params: Any) -> list[dict[str, Any]]:
    """The messages of a session."""
    response = await client.get(f"{SESSIONS}/{session_id}/messages", params=params)
    assert response.status_code == 200, response.text
    messages: list[dict[str, Any]] = response.json()["data"]
    return messages


def said(messages: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Role, text and state of messages."""
    return [(message["role"], message["content"], message["status"]) for message in messages]


def asked(request: text_pb2.GenerateRequest) -> list[tuple[str, str]]:
    """Roles and texts of the messages that reached the text service."""
    return [(message.role, message.text) for message in request.chat.messages]


async def talking(request: text_pb2.GenerateRequest) -> AsyncGenerator[Event, None]:
    """A word each 10 ms, for ever."""
    yield started(request)
    while True:
        yield text_pb2.Delta(token_ids=[1], text="word ")
        await asyncio.sleep(0.01)
