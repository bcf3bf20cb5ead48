"""Bad requests: each gets its status and OpenAI's error object, and reaches no text service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.bad_fields import (
    CHAT_FIELDS,
    COMPLETION_FIELDS,
    UNSUPPORTED_CHAT_FIELDS,
    UNSUPPORTED_COMPLETION_FIELDS,
)
from tests.frontend.conftest import Frontend, running_frontend, until_ready
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of

# One frontend for all rows: a bad request must leave it as it was.
pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"content-type": "application/json"}
_PREFIX = b'{"model": "scripted", "messages": [{"role": "user", "content": "x"}], '

BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the body is empty"),
    "truncated": (_PREFIX, "not valid JSON"),
    "not an object": (b"[1]", "must be a JSON object"),
    "text": (b"hello", "not valid JSON"),
    "two documents": (b"{}{}", "not valid JSON"),
    "nested 10,000 deep": (_PREFIX + b'"x": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "not valid JSON"),
    "nested 65 deep": (_PREFIX + b'"x": ' + b"[" * 64 + b"]" * 64 + b"}", "more than 64 deep"),
    "NaN": (_PREFIX + b'"temperature": NaN}', "not valid JSON"),
    "Infinity": (_PREFIX + b'"temperature": Infinity}', "not valid JSON"),
    "a float beyond a double": (_PREFIX + b'"temperature": 1e999}', "not valid JSON"),
    "duplicate names": (_PREFIX + b'"n": 1, "n": 2}', "one name twice"),
    "duplicate names, one escaped": (_PREFIX + b'"n": 1, "\\u006e": 2}', "one name twice"),
    "duplicate names deep inside": (_PREFIX + b'"metadata": {"a": [{"b": 1, "b": 1}]}}', "one name twice"),
    "invalid UTF-8": (b'{"model": "\xff"}', "not valid JSON"),
    "UTF-8 of a surrogate": (b'{"model": "\xed\xa0\x80"}', "not valid JSON"),
    "unpaired surrogate": (_PREFIX + b'"stop": "\\ud800"}', "not valid JSON"),
    "byte order mark": (b"\xef\xbb\xbf{}", "not valid JSON"),
    "integer beyond 64 bits": (_PREFIX + b'"seed": 36893488147419103232}', "beyond 64 bits"),
    "integer beyond 64 bits in template kwargs": (
        _PREFIX + b'"chat_template_kwargs": {"x": [99999999999999999999]}}',
        "beyond 64 bits",
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service() -> AsyncIterator[ScriptedTextService]:
    """A scripted text service for all rows."""
    scripted = ScriptedTextService()
    async with scripted.serve() as scripted.port:
        yield scripted


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def frontend(service: ScriptedTextService) -> AsyncIterator[Frontend]:
    """A frontend for all rows."""
    async with running_frontend(service.port) as running:
        await until_ready(running)
        yield running


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
async def test_bad_bodies(frontend: Frontend, service: ScriptedTextService, body: bytes, message: str) -> None:
    """A body that is not one clear JSON object gets 400 and says what is wrong."""
    response = await frontend.client.post(CHAT, content=body, headers=JSON)
    assert response.status_code == 400
    assert message in error_of(response)["message"]
    assert service.requests == []


def _case_id(value: object) -> str | None:
    return repr(value)[:60] if isinstance(value, dict) else ""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("fields", "param"), CHAT_FIELDS, ids=_case_id)
async def test_bad_chat_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str, stream: bool
) -> None:
    """A wrong field of a chat request gets 400 naming it, streaming or not."""
    if stream and "stream_options" in fields:
        fields = {"stream": True, "stream_options": {"include_usage": "yes"}}
        param = "stream_options.include_usage"
    response = await frontend.client.post(CHAT, json=chat() | {"stream": stream} | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, None)
    assert service.requests == []


@pytest.mark.parametrize(("fields", "param"), UNSUPPORTED_CHAT_FIELDS, ids=_case_id)
async def test_unsupported_chat_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str
) -> None:
    """What this version cannot serve gets 400 with the code `unsupported`."""
    response = await frontend.client.post(CHAT, json=chat() | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, "unsupported")
    assert service.requests == []


@pytest.mark.parametrize(("fields", "param"), COMPLETION_FIELDS, ids=_case_id)
async def test_bad_completion_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str
) -> None:
    """A wrong field of a completion request gets 400 naming it."""
    response = await frontend.client.post(COMPLETIONS, json=completion() | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, None)
    assert service.requests == []


@pytest.mark.parametrize(("fields", "param"), UNSUPPORTED_COMPLETION_FIELDS, ids=_case_id)
async def test_unsupported_completion_fields(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any], param: str
) -> None:
    """What this version cannot serve gets 400 with the code `unsupported`."""
    response = await frontend.client.post(COMPLETIONS, json=completion() | fields)
    assert response.status_code == 400
    error = error_of(response)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, "unsupported")
    assert service.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"},
        {"no_such_field": [1, {"a": None}]},
        {"tools": None, "tool_choice": "none", "response_format": {"type": "text"}, "modalities": ["text"]},
        {"logprobs": False, "best_of": 1, "stop": None, "echo": False, "n": None},
        {"max_tokens": 5, "max_completion_tokens": 5},
    ],
    ids=_case_id,
)
async def test_harmless_fields_are_served(
    frontend: Frontend, service: ScriptedTextService, fields: dict[str, Any]
) -> None:
    """Unknown fields, those without effect here, and null are accepted."""
    response = await frontend.client.post(CHAT, json=chat() | fields)
    assert response.status_code == 200
    assert len(service.requests) == 1
    service.requests.clear()
