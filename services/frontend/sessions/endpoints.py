"""The API of sessions: /v1/sessions and what is below it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.types import Receive, Scope, Send

from services.chassis.errors import InvalidRequest
from services.frontend.body import BodyReader
from services.frontend.errors import MethodNotAllowed
from services.frontend.fields import Fields
from services.frontend.request_context import context_of
from services.frontend.responses import send_body
from services.frontend.sessions.document import exported, imported
from services.frontend.sessions.objects import message_object, session_object
from services.frontend.sessions.port import SessionStore
from services.frontend.sessions.session import Session, Traits, new_session_id
from services.frontend.sessions.sessions import Sessions
from services.frontend.sessions.traits import NAMES, parse_changes, parse_traits, refuse_others

MAX_PAGE = 100
_DEFAULT_PAGE = 20
MAX_QUERY_CHARS = 200
MAX_ID_CHARS = 64


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of this API: whose, about which session and message, and its query."""

    owner: str
    session_id: str
    message_id: str
    query: Fields
    scope: Scope
    receive: Receive


Answer = tuple[int, dict[str, Any]]
Method = Callable[[_Asked], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class SessionEndpoint:
    """An ASGI application that answers each of its methods with an object."""

    methods: dict[str, Method]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request.

        Raises:
            ServiceError: it is refused, or the database fails.
        """
        method = self.methods.get(scope["method"])
        if method is None:
            allowed = ", ".join(sorted(self.methods))
            raise MethodNotAllowed(f"{scope['method']} is not allowed here; use {allowed}", allowed)
        path = scope["path_params"]
        owner = context_of(scope).owner
        asked = _Asked(owner, path.get("session_id", ""), path.get("message_id", ""), _query_of(scope), scope, receive)
        status, answer = await method(asked)
        await send_body(send, orjson.dumps(answer), status=status)


@dataclass(frozen=True, slots=True)
class SessionApi:
    """What the API does."""

    sessions: Sessions
    bodies: BodyReader

    def endpoints(self) -> dict[str, SessionEndpoint]:
        """Return the endpoints by their paths, the narrower path first where two match."""
        return {
            "/v1/sessions": SessionEndpoint({"GET": self.listed, "POST": self.create}),
            "/v1/sessions/import": SessionEndpoint({"POST": self.take_in}),
            "/v1/sessions/{session_id}": SessionEndpoint(
                {"GET": self.show, "PATCH": self.change, "DELETE": self.delete}
            ),
            "/v1/sessions/{session_id}/messages": SessionEndpoint({"GET": self.messages}),
            "/v1/sessions/{session_id}/messages/{message_id}": SessionEndpoint({"DELETE": self.delete_message}),
            "/v1/sessions/{session_id}/export": SessionEndpoint({"GET": self.give_out}),
        }

    async def create(self, asked: _Asked) -> Answer:
        """Make a session."""

        def read(body: dict[str, Any]) -> Traits:
            refuse_others(Fields(body), NAMES)
            return parse_traits(Fields(body))

        traits = await self.bodies.read(asked.scope, asked.receive, read)
        now = time.time()
        expires_at = None if traits.ttl_seconds is None else now + traits.ttl_seconds
        session = Session(new_session_id(), asked.owner, traits, now, now, expires_at)
        await self.sessions.call(lambda store: store.create(session))
        return 201, session_object(session)

    async def listed(self, asked: _Asked) -> Answer:
        """List sessions."""
        limit = asked.query.integer("limit", 1, MAX_PAGE) or _DEFAULT_PAGE
        after = asked.query.string("after", MAX_ID_CHARS)
        query = asked.query.string("q", MAX_QUERY_CHARS)
        use = self.sessions.call if query is None else self.sessions.search
        page = await use(lambda store: store.page(asked.owner, limit, after, query))
        entries = [session_object(session) for session in page.sessions]
        last_id = entries[-1]["id"] if entries else None
        return 200, {"object": "list", "data": entries, "has_more": page.has_more, "last_id": last_id}

    async def show(self, asked: _Asked) -> Answer:
        """Show a session."""
        session = await self._after_its_turn(asked, lambda store: store.get(asked.owner, asked.session_id))
        return 200, session_object(session)

    async def change(self, asked: _Asked) -> Answer:
        """Change a session."""

        def read(body: dict[str, Any]) -> tuple[Callable[[Traits], Traits], str | None]:
            fields = Fields(body)
            refuse_others(fields, (*NAMES, "head"))
            head = fields.string("head", MAX_ID_CHARS)
            if head is None and "head" in body:
                raise InvalidRequest("head must be the id of a message; leave it out to keep the head", param="head")
            return parse_changes(fields), head

        amend, head = await self.bodies.read(asked.scope, asked.receive, read)
        session = await self._after_its_turn(
            asked, lambda store: store.change(asked.owner, asked.session_id, amend, head)
        )
        return 200, session_object(session)

    async def delete(self, asked: _Asked) -> Answer:
        """Delete a session."""
        await self._after_its_turn(asked, lambda store: store.delete(asked.owner, asked.session_id))
        return 200, {"id": asked.session_id, "object": "session.deleted", "deleted": True}

    async def messages(self, asked: _Asked) -> Answer:
        """List the messages on the path to the head, or all."""
        everything = asked.query.boolean("all") or False

        def read(store: SessionStore) -> list[dict[str, Any]]:
            if everything:
                found = store.tree(asked.owner, asked.session_id)
            else:
                head = store.get(asked.owner, asked.session_id).head
                found = store.path(asked.owner, asked.session_id, head)
            return [message_object(asked.session_id, message) for message in found]

        entries = await self._after_its_turn(asked, read)
        last_id = entries[-1]["id"] if entries else None
        return 200, {"object": "list", "data": entries, "has_more": False, "last_id": last_id}

    async def delete_message(self, asked: _Asked) -> Answer:
        """Delete a message with what follows it."""
        await self._after_its_turn(
            asked, lambda store: store.delete_message(asked.owner, asked.session_id, asked.message_id)
        )
        return 200, {"id": asked.message_id, "object": "session.message.deleted", "deleted": True}

    async def give_out(self, asked: _Asked) -> Answer:
        """Export a session."""

        def read(store: SessionStore) -> dict[str, Any]:
            session = store.get(asked.owner, asked.session_id)
            return exported(session, list(store.tree(asked.owner, asked.session_id)))

        return 200, await self._after_its_turn(asked, read)

    async def take_in(self, asked: _Asked) -> Answer:
        """Import a session."""

        def read(body: dict[str, Any]) -> Any:
            return imported(body, asked.owner, time.time())

        session, messages = await self.bodies.read(asked.scope, asked.receive, read)
        await self.sessions.call(lambda store: store.create(session, messages))
        return 201, session_object(session)

    async def _after_its_turn(self, asked: _Asked, use: Callable[[SessionStore], Any]) -> Any:
        await self.sessions.settled(asked.session_id)
        return await self.sessions.call(use)


def _query_of(scope: Scope) -> Fields:
    """Return the query's members: numbers and truth values as such.

    Raises:
        InvalidRequest: one is given twice.
    """
    try:
        given = parse_qs(scope["query_string"].decode("ascii"), keep_blank_values=False, errors="strict")
    except ValueError:
        raise InvalidRequest("the query is no percent-encoded UTF-8") from None
    values: dict[str, Any] = {}
    for name, each in given.items():
        if len(each) > 1:
            raise InvalidRequest("the query gives one name twice; give each name once")
        values[name] = _typed(name, each[0])
    return Fields(values)


def _typed(name: str, text: str) -> Any:
    if name == "limit" and text.isascii() and text.isdecimal() and len(text) < 10:
        return int(text)
    if name == "all" and text in ("true", "false"):
        return text == "true"
    return text
