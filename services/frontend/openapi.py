"""The API's description, at /openapi.json: what requests may hold, and the shapes of answers and errors.

https://spec.openapis.org/oas/v3.1.0. Its bounds are the parsers' own; members that it does not name are ignored or
refused by name, so that it lists all that has an effect.
"""

from __future__ import annotations

from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from services.frontend import chat_request, completion_request, context_policy, messages, params, prompts
from services.frontend.fields import INT32, INT64, UINT32
from services.frontend.presets.preset_file import MAX_VALUE_CHARS
from services.frontend.responses import send_body
from services.frontend.resume.description import stream_paths
from services.frontend.sessions.description import TURN_FIELDS, session_paths, session_schemas

Schema = dict[str, Any]


def integer(low: int, high: int) -> Schema:
    """Return the schema of an integer from `low` to `high`, or null."""
    return {"type": ["integer", "null"], "minimum": low, "maximum": high}


def number(low: float, high: float, *, above: bool = False) -> Schema:
    """Return the schema of a number from `low`, or above it, to `high`, or null."""
    return {"type": ["number", "null"], ("exclusiveMinimum" if above else "minimum"): low, "maximum": high}


def array(items: Schema, low: int, high: int) -> Schema:
    """Return the schema of a list of `low` to `high` members."""
    return {"type": "array", "items": items, "minItems": low, "maxItems": high}


_BOOLEAN: Schema = {"type": ["boolean", "null"]}
_STRING: Schema = {"type": ["string", "null"]}
_OBJECT: Schema = {"type": ["object", "null"]}
_TOKEN_ID: Schema = {"type": "integer", "minimum": 0, "maximum": UINT32}
_STOP: Schema = {"type": "string", "minLength": 1, "maxLength": params.MAX_STOP_CHARS}

# What both endpoints take.
SHARED: dict[str, Schema] = {
    "model": {"type": "string", "minLength": 1},
    "temperature": number(0, 2),
    "top_p": number(0, 1, above=True),
    "top_k": integer(-1, INT32),
    "min_p": number(0, 1),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "repetition_penalty": number(0, 2, above=True),
    "seed": integer(-INT64 - 1, INT64),
    "min_tokens": integer(0, UINT32),
    "ignore_eos": _BOOLEAN,
    "n": integer(1, params.MAX_N),
    "stop": {"anyOf": [_STOP, array(_STOP, 0, params.MAX_STOPS), {"type": "null"}]},
    "include_stop_str_in_output": _BOOLEAN,
    "skip_special_tokens": _BOOLEAN,
    "format_checks": {"anyOf": [array({"enum": list(params.FORMAT_CHECKS)}, 0, 4), {"type": "null"}]},
    "stop_on_format_fault": _BOOLEAN,
    "stop_token_ids": {"anyOf": [array(_TOKEN_ID, 0, params.MAX_STOP_TOKEN_IDS), {"type": "null"}]},
    "allowed_token_ids": {"anyOf": [array(_TOKEN_ID, 1, params.MAX_ALLOWED_TOKEN_IDS), {"type": "null"}]},
    "logit_bias": {
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^[0-9]{1,10}$"},
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
        "maxProperties": params.MAX_LOGIT_BIASES,
    },
    "stream": _BOOLEAN,
    "stream_options": {
        "type": ["object", "null"],
        "properties": {"include_usage": _BOOLEAN, "continuous_usage_stats": _BOOLEAN, "resumable": _BOOLEAN},
    },
    "response_format": _OBJECT,
    "structured_outputs": _OBJECT,
    "user": _STRING,
    "metadata": _OBJECT,
    "store": _BOOLEAN,
}
CHAT: dict[str, Schema] = {
    **SHARED,
    "messages": array({"$ref": "#/components/schemas/Message"}, 1, messages.MAX_MESSAGES),
    "max_tokens": integer(1, UINT32),
    "max_completion_tokens": integer(1, UINT32),
    "logprobs": _BOOLEAN,
    "top_logprobs": integer(0, chat_request.MAX_TOP_LOGPROBS),
    "add_generation_prompt": _BOOLEAN,
    "continue_final_message": _BOOLEAN,
    "chat_template_kwargs": _OBJECT,
    "reasoning_effort": {"type": ["string", "null"], "minLength": 1, "maxLength": chat_request.MAX_EFFORT_CHARS},
    "tools": {"type": ["array", "null"]},
    "tool_choice": {"type": ["string", "object", "null"]},
    "parallel_tool_calls": _BOOLEAN,
    "context_policy": {"enum": [*context_policy.CONTEXT_POLICIES, None]},
    "preset": _STRING,
    "preset_variables": {
        "type": ["object", "null"],
        "additionalProperties": {"type": ["string", "null"], "maxLength": MAX_VALUE_CHARS},
    },
}
COMPLETION: dict[str, Schema] = {
    **SHARED,
    "prompt": {
        "anyOf": [
            {"type": "string"},
            array(_TOKEN_ID, 1, UINT32),
            array({"type": "string"}, 1, prompts.MAX_PROMPTS),
            array(array(_TOKEN_ID, 1, UINT32), 1, prompts.MAX_PROMPTS),
        ]
    },
    "max_tokens": integer(0, UINT32),
    "logprobs": integer(0, completion_request.MAX_LOGPROBS),
    "add_special_tokens": _BOOLEAN,
    "suffix": _STRING,
    "echo": _BOOLEAN,
}

_MESSAGE: Schema = {
    "type": "object",
    "properties": {
        "role": {"enum": list(messages.ROLES)},
        "content": {
            "anyOf": [
                {"type": "string"},
                array({"type": "object", "required": ["type"]}, 1, messages.MAX_PARTS),
                {"type": "null"},
            ]
        },
        "name": _STRING,
        "tool_calls": {"type": ["array", "null"]},
        "tool_call_id": _STRING,
    },
    "required": ["role"],
}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": _STRING,
                "code": _STRING,
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}
_USAGE: Schema = {
    "type": "object",
    "properties": {name: {"type": "integer"} for name in ("prompt_tokens", "completion_tokens", "total_tokens")},
    "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
}


def _answer(object_name: str, choice: str) -> Schema:
    choices = {"type": "object", "required": ["index", choice, "finish_reason"]}
    return {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": object_name},
            "created": {"type": "integer"},
            "model": {"type": "string"},
            "choices": {"type": "array", "items": choices, "minItems": 1},
            "usage": _USAGE,
        },
        "required": ["id", "object", "created", "model", "choices", "usage"],
    }


def _body(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}


def _generating(request: str, answer: str) -> Schema:
    answers: Schema = {"description": "The answer; with stream: true, chunks as server-sent events"}
    answers["content"] = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{answer}"}},
        "text/event-stream": {"schema": {"type": "string"}},
    }
    return {
        "post": {
            "operationId": f"create{answer}",
            "requestBody": {"required": True, **_body({"$ref": f"#/components/schemas/{request}"})},
            "responses": {"200": answers, "default": {"$ref": "#/components/responses/Error"}},
        }
    }


def _reading(operation: str, **more: Any) -> Schema:
    responses = {
        "200": {"description": "As asked for", **_body({"type": "object"})},
        "default": {"$ref": "#/components/responses/Error"},
    }
    return {"get": {"operationId": operation, "responses": responses, **more}}


def document(asks_for_key: bool = False) -> Schema:
    """Return the description, as an object of OpenAPI 3.1."""
    # https://spec.openapis.org/oas/v3.1.0#security-scheme-object
    schemes: Schema = {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}} if asks_for_key else {}
    security: Schema = {"security": [{"bearer": []}]} if asks_for_key else {}
    model, preset = (
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in ("model", "preset")
    )
    return {
        "openapi": "3.1.0",
        **security,
        "info": {"title": "Stream-Omni", "version": "1", "description": "OpenAI's API for any language model."},
        "paths": {
            "/v1/chat/completions": _generating("ChatRequest", "ChatCompletion"),
            "/v1/completions": _generating("CompletionRequest", "Completion"),
            "/v1/models": _reading("listModels"),
            "/v1/models/{model}": _reading("getModel", parameters=[model]),
            **stream_paths(),
            **session_paths(),
            "/v1/presets": _reading("listPresets"),
            "/v1/presets/{preset}": _reading("getPreset", parameters=[preset]),
        },
        "components": {
            **schemes,
            "schemas": {
                "ChatRequest": {
                    "type": "object",
                    "properties": CHAT | TURN_FIELDS,
                    "anyOf": [{"required": ["model", "messages"]}, {"required": ["session_id"]}],
                },
                "CompletionRequest": {"type": "object", "properties": COMPLETION, "required": ["model", "prompt"]},
                "Message": _MESSAGE,
                "ChatCompletion": _answer("chat.completion", "message"),
                "Completion": _answer("text_completion", "text"),
                "Error": _ERROR,
                **session_schemas(),
            },
            "responses": {
                "Error": {"description": "OpenAI's error object", **_body({"$ref": "#/components/schemas/Error"})}
            },
        },
    }


class OpenApiEndpoint:
    """Serves the description from memory.

    Args:
        asks_for_key: whether the API asks for a key.
    """

    def __init__(self, asks_for_key: bool) -> None:
        self._body = orjson.dumps(document(asks_for_key))

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Serve one request."""
        await send_body(send, self._body)
