"""The API's description says what the parsers do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from services.chassis.errors import InvalidRequest
from services.frontend.chat_request import parse_chat_request
from services.frontend.completion_request import parse_completion_request
from services.frontend.openapi import CHAT, COMPLETION, Schema, document
from services.frontend.presets.application import with_preset
from services.frontend.presets.library import Presets
from tests.frontend.conftest import Frontend

Parse = Callable[[dict[str, Any]], object]
PRESETS = Presets()


def parse_chat(body: dict[str, Any]) -> object:
    """Read a chat's body as the endpoint does."""
    return parse_chat_request(with_preset(body, PRESETS))


ENDPOINTS: dict[str, tuple[Parse, dict[str, Schema], dict[str, Any]]] = {
    "chat": (parse_chat, CHAT, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
    "completion": (parse_completion_request, COMPLETION, {"model": "m", "prompt": "x"}),
}
# What a field needs beside it.
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ("chat", "top_logprobs"): {"logprobs": True},
    ("completion", "max_tokens"): {"echo": True},
}


def _bounded() -> Iterator[tuple[str, str, Any, Any]]:
    """Each field with bounds: endpoint, name, and values just within and just outside of them."""
    for endpoint, (_, properties, _) in ENDPOINTS.items():
        for name, schema in properties.items():
            kind = schema.get("type", [])
            if "integer" in kind:
                yield endpoint, name, schema["minimum"], schema["minimum"] - 1
                yield endpoint, name, schema["maximum"], schema["maximum"] + 1
            elif "number" in kind:
                low = schema.get("minimum")
                yield endpoint, name, *((low, low - 0.001) if low is not None else (0.001, schema["exclusiveMinimum"]))
                yield endpoint, name, schema["maximum"], schema["maximum"] + 0.001


@pytest.mark.parametrize(("endpoint", "name", "within", "outside"), list(_bounded()))
def test_bounds(endpoint: str, name: str, within: Any, outside: Any) -> None:
    """A value at a described bound is taken, and one just past it is refused by the field's name."""
    parse, _, body = ENDPOINTS[endpoint]
    together = TOGETHER.get((endpoint, name), {})
    parse({**body, **together, name: within})
    with pytest.raises(InvalidRequest) as refusal:
        parse({**body, **together, name: outside})
    assert refusal.value.param == name


@pytest.mark.parametrize(
    ("endpoint", "name"), [(key, name) for key, each in ENDPOINTS.items() for name in each[1] if name not in each[2]]
)
def test_fields(endpoint: str, name: str) -> None:
    """A described field may be null, and is refused by its name when it is of a type that is not described."""
    parse, properties, body = ENDPOINTS[endpoint]
    parse({**body, name: None})
    allowed = str(properties[name])
    values: tuple[tuple[str, Any], ...] = (("boolean", True), ("object", {}), ("string", "x"))
    wrong = next(value for word, value in values if word not in allowed)
    with pytest.raises(InvalidRequest) as refusal:
        parse({**body, **TOGETHER.get((endpoint, name), {}), name: wrong})
    assert re.match(rf"{name}\b", refusal.value.param or "")


async def test_served(frontend: Frontend) -> None:
    """The description is served as JSON, and every reference in it leads somewhere."""
    response = await frontend.client.get("/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == document()
    for reference in set(re.findall(r'"#/([^"]+)"', response.text)):
        found: Any = response.json()
        for part in reference.split("/"):
            found = found[part]
        assert found


async def test_every_path_is_served(frontend: Frontend) -> None:
    """Each described path is a route: what is asked there is not unknown."""
    for path, operations in document()["paths"].items():
        for method in operations:
            response = await frontend.client.request(method, re.sub(r"{\w+}", "x", path))
            assert "nothing is served at this path" not in response.text
