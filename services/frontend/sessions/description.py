"""Sessions in the API's description."""

from __future__ import annotations

from typing import Any

from services.frontend.context_policy import CONTEXT_POLICIES
from services.frontend.messages import ROLES
from services.frontend.model_name import MAX_MODEL_CHARS
from services.frontend.sessions import endpoints, session

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer"}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_MAYBE_OBJECT: Schema = {"type": ["object", "null"]}
_ID: Schema = {"type": ["string", "null"], "maxLength": endpoints.MAX_ID_CHARS}

# What a request of /v1/chat/completions may hold beside what every one may.
TURN_FIELDS: Schema = {"session_id": _ID, "parent_message_id": _ID, "continue_message_id": _ID}

_TRAITS: Schema = {
    "title": {**_MAYBE_TEXT, "maxLength": session.MAX_TITLE_CHARS},
    "model": {**_MAYBE_TEXT, "maxLength": MAX_MODEL_CHARS},
    "system": {**_MAYBE_TEXT, "maxLength": session.MAX_SYSTEM_CHARS},
    "context_policy": {"enum": [*CONTEXT_POLICIES, None]},
    "ttl_seconds": {"type": ["integer", "null"], "minimum": 1, "maximum": session.MAX_TTL_SECONDS},
    "metadata": {
        "type": ["object", "null"],
        "maxProperties": session.MAX_METADATA_ENTRIES,
        "propertyNames": {"minLength": 1, "maxLength": session.MAX_METADATA_NAME_CHARS},
        "additionalProperties": {"type": "string", "maxLength": session.MAX_METADATA_VALUE_CHARS},
    },
}
_SESSION: Schema = {
    "id": _TEXT,
    "object": {"const": "session"},
    **_TRAITS,
    "created_at": _INTEGER,
    "updated_at": _INTEGER,
    "expires_at": {"type": ["integer", "null"]},
    "head": _MAYBE_TEXT,
    "summary": _MAYBE_TEXT,
    "message_count": _INTEGER,
    "busy": {"type": "boolean"},
}
_MESSAGE: Schema = {
    "id": _TEXT,
    "object": {"const": "session.message"},
    "session_id": _TEXT,
    "parent_id": _MAYBE_TEXT,
    "role": {"enum": list(ROLES)},
    "content": _TEXT,
    "status": {"enum": ["complete", "partial", "running"]},
    "finish_reason": _MAYBE_TEXT,
    "created_at": _INTEGER,
    "model": _MAYBE_TEXT,
    "usage": _MAYBE_OBJECT,
    "stats": _MAYBE_OBJECT,
    "context": _MAYBE_OBJECT,
    "siblings": {"type": "array", "items": _TEXT},
}


def session_schemas() -> Schema:
    """Return the schemas that the paths refer to."""
    export = {
        "object": {"const": "session.export"},
        "version": {"const": 1},
        "session": {"type": "object"},
        "messages": {"type": "array", "items": {"type": "object"}, "maxItems": session.MAX_SESSION_MESSAGES},
    }
    return {
        "Session": _whole(_SESSION),
        "SessionMessage": _whole(_MESSAGE),
        "SessionExport": _whole(export),
        "SessionTraits": {"type": "object", "properties": _TRAITS, "additionalProperties": False},
        "SessionChanges": {"type": "object", "properties": {**_TRAITS, "head": _ID}, "additionalProperties": False},
    }


def session_paths() -> Schema:
    """Return the path items of `/v1/sessions`: https://spec.openapis.org/oas/v3.1.0#path-item-object."""
    limit = {"type": "integer", "minimum": 1, "maximum": endpoints.MAX_PAGE}
    listing = [
        _query("limit", limit),
        _query("after", _TEXT),
        _query("q", {"type": "string", "maxLength": endpoints.MAX_QUERY_CHARS}),
    ]
    own, one = [_path("session_id")], [_path("session_id"), _path("message_id")]
    everything = _query("all", {"type": "boolean"})
    return {
        "/v1/sessions": {
            "get": _operation("listSessions", _list_of("Session"), parameters=listing),
            "post": _operation("createSession", _ref("Session"), "SessionTraits", status="201"),
        },
        "/v1/sessions/import": {
            "post": _operation("importSession", _ref("Session"), "SessionExport", status="201"),
        },
        "/v1/sessions/{session_id}": {
            "get": _operation("getSession", _ref("Session"), parameters=own),
            "patch": _operation("changeSession", _ref("Session"), "SessionChanges", parameters=own),
            "delete": _operation("deleteSession", _deleted("session.deleted"), parameters=own),
        },
        "/v1/sessions/{session_id}/messages": {
            "get": _operation("listMessages", _list_of("SessionMessage"), parameters=[*own, everything]),
        },
        "/v1/sessions/{session_id}/messages/{message_id}": {
            "delete": _operation("deleteMessage", _deleted("session.message.deleted"), parameters=one),
        },
        "/v1/sessions/{session_id}/export": {
            "get": _operation("exportSession", _ref("SessionExport"), parameters=own),
        },
    }


def _whole(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list_of(name: str) -> Schema:
    members = {
        "object": {"const": "list"},
        "data": {"type": "array", "items": _ref(name)},
        "has_more": {"type": "boolean"},
        "last_id": _MAYBE_TEXT,
    }
    return _whole(members)


def _deleted(name: str) -> Schema:
    return _whole({"id": _TEXT, "object": {"const": name}, "deleted": {"const": True}})


def _path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


def _query(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "schema": schema}


def _operation(operation: str, answer: Schema, body: str | None = None, status: str = "200", **more: Any) -> Schema:
    taken = {} if body is None else {"requestBody": {"required": True, **_json(_ref(body))}}
    responses = {
        status: {"description": "As asked for", **_json(answer)},
        "default": {"$ref": "#/components/responses/Error"},
    }
    return {"operationId": operation, **taken, "responses": responses, **more}


def _json(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}
