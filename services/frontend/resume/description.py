"""The paths of streams in the API's description."""

from __future__ import annotations

from typing import Any

_ERRORS = {"default": {"$ref": "#/components/responses/Error"}}
_STREAM_ID = {"name": "stream_id", "in": "path", "required": True, "schema": {"type": "string"}}
_NUMBER = {"type": "integer", "minimum": 0}


def stream_paths() -> dict[str, Any]:
    """Return the path items of `/v1/streams`: https://spec.openapis.org/oas/v3.1.0#path-item-object."""
    events = {"description": "The events after that one, then those to come"}
    over = {"description": "The stream is over, and that was its last event"}
    cancelled = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "cancelled": {"type": "boolean"}},
        "required": ["id", "cancelled"],
    }
    return {
        "/v1/streams/{stream_id}": {
            "get": {
                "operationId": "resumeStream",
                "description": "Picks up a stream that was asked for with stream_options.resumable.",
                "parameters": [
                    _STREAM_ID,
                    {"name": "Last-Event-ID", "in": "header", "schema": _NUMBER},
                    {"name": "last_event_id", "in": "query", "schema": _NUMBER},
                ],
                "responses": {
                    "200": {**events, "content": {"text/event-stream": {"schema": {"type": "string"}}}},
                    "204": over,
                    **_ERRORS,
                },
            }
        },
        "/v1/streams/{stream_id}/cancel": {
            "post": {
                "operationId": "cancelStream",
                "description": "Ends a stream; a generation over a WebSocket too. false: it had ended before.",
                "parameters": [_STREAM_ID],
                "responses": {
                    "200": {"description": "Done", "content": {"application/json": {"schema": cancelled}}},
                    **_ERRORS,
                },
            }
        },
    }
