"""Sessions in memory, as the service's API has them: enough for one client."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]


class Sessions:
    """Answers what is asked of `/v1/sessions`, and what a chat with a `session_id` needs."""

    def __init__(self) -> None:
        self.sessions: dict[str, Body] = {}
        self.messages: dict[str, list[Body]] = {}
        self._made = 0
        # So many turns are refused because another is under way.
        self.busy = 0

    def respond(self, method: str, path: str, body: Body, query: dict[str, str]) -> tuple[int, Body]:
        """Return the status and the answer to a request below `/v1/sessions`."""
        parts = path.removeprefix("/v1/sessions").strip("/").split("/")
        if parts == [""]:
            return (201, self._create(body)) if method == "POST" else (200, self._listed(query))
        if parts == ["import"]:
            session = self._create(body["session"])
            self.messages[session["id"]] = list(body["messages"])
            return 201, session
        session = self.sessions.get(parts[0], {})
        if not session:
            return 404, {"error": {"message": "no such session", "code": "session_not_found"}}
        if parts[1:] == ["messages"]:
            return 200, {"object": "list", "data": self.path(parts[0])}
        if parts[1:] == ["export"]:
            return 200, {"session": session, "messages": self.messages[parts[0]]}
        if method == "DELETE":
            del self.sessions[parts[0]]
            return 200, {"id": parts[0], "deleted": True}
        if method == "PATCH":
            session.update(body)
        return 200, session

    def begin(self, body: Body) -> tuple[Body, list[Body]]:
        """Keep a turn; returns the `session` member of its answer and the conversation up to it."""
        session = self.sessions[body["session_id"]]
        parent = body.get("parent_message_id", session["head"])
        for message in body.get("messages", []):
            parent = self._keep(session["id"], parent, message)
        answer = self._keep(session["id"], parent, {"role": "assistant", "content": ""})
        session["head"] = answer
        said = self.path(session["id"])[:-1]
        return {"id": session["id"], "message_ids": [], "answer_id": answer}, said

    def end(self, answer_id: str, text: str) -> None:
        """Keep an answer."""
        for messages in self.messages.values():
            for message in messages:
                if message["id"] == answer_id:
                    message["content"] = text

    def path(self, session_id: str) -> list[Body]:
        """The messages on the way to the head."""
        by_id = {message["id"]: message for message in self.messages[session_id]}
        found: list[Body] = []
        at = self.sessions[session_id]["head"]
        while at is not None:
            found.insert(0, by_id[at])
            at = by_id[at]["parent_id"]
        return found

    def _create(self, body: Body) -> Body:
        self._made += 1
        made = {"title": None, "model": None, "system": None, "head": None, "updated_at": 0} | body
        session_id = f"sess_{self._made}"
        session: Body = made | {"object": "session", "id": session_id}
        self.sessions[session_id] = session
        self.messages[session_id] = []
        return session

    def _listed(self, query: dict[str, str]) -> Body:
        newest = list(reversed(self.sessions.values()))
        found = [session for session in newest if query.get("q", "") in (session["title"] or "")]
        ids = [session["id"] for session in found]
        begin = ids.index(query["after"]) + 1 if "after" in query else 0
        page = found[begin : begin + int(query["limit"])]
        has_more = begin + len(page) < len(found)
        return {"object": "list", "data": page, "has_more": has_more, "last_id": page[-1]["id"] if page else None}

    def _keep(self, session_id: str, parent: str | None, message: Body) -> str:
        message_id = f"msg_{sum(map(len, self.messages.values())) + 1}"
        kept = {"id": message_id, "session_id": session_id, "parent_id": parent, "status": "complete", **message}
        self.messages[session_id].append(kept)
        self.sessions[session_id]["title"] = self.sessions[session_id]["title"] or message["content"]
        return message_id
