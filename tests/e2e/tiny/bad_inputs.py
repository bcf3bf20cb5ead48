"""Bad input over HTTP, one row for each kind: what is sent, and the error that it gets."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.differential.bad_requests import CONTEXT, VOCABULARY, bad_requests
from tests.e2e.differential.explained import EXPLAINED_OUTCOMES
from tests.e2e.tiny.test_bad_structured_output import BAD as CONSTRAINTS
from tests.frontend.bad_bodies import BODIES
from tests.frontend.bad_fields import (
    CHAT_FIELDS,
    COMPLETION_FIELDS,
    UNSUPPORTED_CHAT_FIELDS,
    UNSUPPORTED_COMPLETION_FIELDS,
)
from tests.frontend.requests import CHAT, COMPLETIONS

JSON = {"content-type": "application/json"}
OUTSIDE = VOCABULARY
NOT_FOUND, OUT_OF_VOCABULARY, TOO_LONG = "model_not_found", "token_id_out_of_vocabulary", "context_length_exceeded"
ANY_CODE = "…"
# Control characters and the dots that other servers resolve.
PATH_TRICKS = (
    "//v1/models",
    "/v1/../metrics",
    "/v1/%2e%2e/metrics",
    "/v1/chat/completions/",
    "/V1/models",
    "/v1//models",
    "/v1/models;x",
    "/../../etc/passwd",
    "/v1/chat/completions%00",
)


@dataclass(frozen=True)
class BadInput:
    """A request and its error. `param` is the field named, or the first part of its path; None names no field.

    `code` None is JSON's null.
    """

    name: str
    path: str
    content: bytes
    param: str | None = None
    code: str | None = None
    status: int = 400
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)


# Beside a valid chat: what only the tiers behind the frontend can tell.
DEEP_CHAT_FIELDS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"stop_token_ids": [OUTSIDE]}, "stop_token_ids", OUT_OF_VOCABULARY),
    ({"stop_token_ids": [2**32 - 1]}, "stop_token_ids", OUT_OF_VOCABULARY),
    ({"logit_bias": {str(OUTSIDE): 1}}, "logit_bias", OUT_OF_VOCABULARY),
    ({"allowed_token_ids": [1, OUTSIDE]}, "allowed_token_ids", OUT_OF_VOCABULARY),
    ({"messages": [{"role": "user", "content": "word " * 9000}]}, "messages", TOO_LONG),
    ({"max_tokens": 2 * CONTEXT}, "max_tokens", TOO_LONG),
    ({"min_tokens": CONTEXT, "max_tokens": None}, "min_tokens", None),
    ({"messages": [{"role": "assistant"}], "continue_final_message": True}, "continue_final_message", None),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]},
        "tools[0].function.parameters",
        None,
    ),
    (
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]},
        "tools[0].parameters",
        None,
    ),
]
DEEP_COMPLETION_FIELDS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"prompt": [1, OUTSIDE]}, "prompt", OUT_OF_VOCABULARY),
    ({"prompt": [2**32 - 1]}, "prompt", OUT_OF_VOCABULARY),
    ({"prompt": [[1], [OUTSIDE]]}, "prompt", OUT_OF_VOCABULARY),
    ({"prompt": [1] * CONTEXT}, "prompt", TOO_LONG),
    ({"prompt": "word " * 9000}, "prompt", TOO_LONG),
    ({"prompt": "x", "suffix": "end"}, "suffix", "no_fill_in_the_middle"),
    ({"prompt": ""}, "prompt", "empty_prompt"),
]
# Half a second of a processor's work, which other streams stretch: its time is measured where its row comes from.
HEAVY = {"structured_outputs": {"regex": "((a{100}){100}){100}"}}
MODELS = ("unknown", "../../x", "http://127.0.0.1:9/x", "tiny-random-llama/", "' OR 1=1 --")


def bad_inputs(model: str, *, stream: bool) -> list[BadInput]:
    """Return all rows; those with a good body apart from one field ask for a stream or not."""
    rows = [*_fields(model, stream), *_shared(model, stream)]
    return rows if stream else [*rows, *_bodies(model), *_paths()]


def _fields(model: str, stream: bool) -> Iterator[BadInput]:
    chat = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}
    completion = {"model": model, "prompt": "Hi", "max_tokens": 5}
    tables: list[tuple[str, dict[str, Any], list[tuple[dict[str, Any], str, str | None]]]] = [
        (CHAT, chat, [(fields, param, None) for fields, param in CHAT_FIELDS]),
        (CHAT, chat, [(fields, param, "unsupported") for fields, param in UNSUPPORTED_CHAT_FIELDS]),
        (CHAT, chat, DEEP_CHAT_FIELDS),
        (CHAT, chat, [(fields, param, None) for fields, param in CONSTRAINTS if fields != HEAVY]),
        (COMPLETIONS, completion, [(fields, param, None) for fields, param in COMPLETION_FIELDS]),
        (COMPLETIONS, completion, [(fields, param, "unsupported") for fields, param in UNSUPPORTED_COMPLETION_FIELDS]),
        (COMPLETIONS, completion, DEEP_COMPLETION_FIELDS),
    ]
    for path, good, table in tables:
        for fields, param, code in table:
            if stream and {"stream", "stream_options"} & fields.keys():
                continue
            # Two names of one thing; the other would be refused for being the second.
            base = {name: value for name, value in good.items() if not (name == "max_tokens" and _names_tokens(fields))}
            content = json.dumps({**base, "stream": stream, **fields}).encode()
            yield BadInput(f"{path} {json.dumps(fields)[:60]}", path, content, param, code)
    for name in MODELS:
        for path, good in ((CHAT, chat), (COMPLETIONS, completion)):
            content = json.dumps({**good, "model": name, "stream": stream}).encode()
            yield BadInput(f"{path} model {name}", path, content, "model", NOT_FOUND, 404)


def _names_tokens(fields: dict[str, Any]) -> bool:
    return any(name in fields for name in ("max_completion_tokens", "min_tokens"))


def _shared(model: str, stream: bool) -> Iterator[BadInput]:
    """The differential test's rows of one wrong field each, as a stream too."""
    for row in bad_requests(model):
        # Faults of the body as a whole, which name no field, are among the bodies.
        whole = b"36893488147419103232" in row.content or rb"\ud800" in row.content
        explained = EXPLAINED_OUTCOMES.get(row.name)
        served = explained is not None and explained.reason.startswith("served")
        if whole or served or row.parameter in (None, "model", "stream", "stream_options"):
            continue
        body = {**json.loads(row.content), "stream": stream}
        yield BadInput(row.name, row.path, json.dumps(body).encode(), row.parameter, ANY_CODE)


def _bodies(model: str) -> Iterator[BadInput]:
    for name, (content, _) in BODIES.items():
        yield BadInput(f"body: {name}", CHAT, content)
    good = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).encode()
    large = b'{"messages": "' + b"x" * 27_000_000 + b'"}'
    yield BadInput("27 MB", CHAT, large, code="too_large", status=413)
    yield BadInput("27 MB of nothing parsable", CHAT, b"[" * 27_000_000, code="too_large", status=413)
    values = b'{"x": [' + b"1," * 2_100_000 + b"1]}"
    yield BadInput("millions of values", CHAT, values, code="too_large", status=413)
    bomb = gzip.compress(b" " * 20_000_000)
    for encoding in ("gzip", "deflate", "br", "identity, gzip"):
        headers = {**JSON, "content-encoding": encoding}
        yield BadInput(f"encoded: {encoding}", CHAT, bomb, code="unsupported_media_type", status=415, headers=headers)
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"):
        yield BadInput(f"type: {kind}", CHAT, good, headers={"content-type": kind})


def _paths() -> Iterator[BadInput]:
    for path in PATH_TRICKS:
        yield BadInput(f"GET {path}", path, b"", status=404, method="GET")
        yield BadInput(f"POST {path}", path, b"{}", status=404)
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for path in (CHAT, COMPLETIONS):
            yield BadInput(f"{method} {path}", path, b"", status=405, method=method)
    yield BadInput("POST /v1/models", "/v1/models", b"{}", status=405)
    for name in ("nothing", "../../x", "%2e%2e%2fx", "http://127.0.0.1:9/x"):
        yield BadInput(f"model card {name}", f"/v1/models/{name}", b"", "model", NOT_FOUND, 404, "GET")
