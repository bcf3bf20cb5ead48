"""Bad requests: each gets its status and OpenAI's error object, and reaches no text service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.bad_bodies import BODIES
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
