"""What the API's description says of sessions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from services.frontend.openapi import document
from services.frontend.sessions.description import session_schemas
from tests.frontend.conftest import Starter
from tests.frontend.sessions.turn_calls import SESSIONS, create, take_turn


def shape(name: str) -> dict[str, Any]:
    """A described schema."""
    described: dict[str, Any] = session_schemas()[name]
    return described


async def test_objects(start: Starter, tmp_path: Path) -> None:
    """Sessions, messages and exports have the described members, and no message lacks one."""
    client = (await start(state_dir=tmp_path)).client
    session_id = await create(client, title="t")
    await take_turn(client, session_id, "one")
    session = (await client.get(f"{SESSIONS}/{session_id}")).json()
    assert set(session) == set(shape("Session")["required"])
    messages = (await client.get(f"{SESSIONS}/{session_id}/messages")).json()["data"]
    for message in messages:
        assert set(message) == set(shape("SessionMessage")["required"])
    export = (await client.get(f"{SESSIONS}/{session_id}/export")).json()
    assert set(export) == set(shape("SessionExport")["required"])


@pytest.mark.parametrize("name", ["title", "system", "model"])
async def test_lengths(start: Starter, tmp_path: Path, name: str) -> None:
    """A trait of the described length is taken, and a longer one is refused."""
    client = (await start(state_dir=tmp_path)).client
    longest = shape("SessionTraits")["properties"][name]["maxLength"]
    assert (await client.post(SESSIONS, json={name: "x" * longest})).status_code == 201
    assert (await client.post(SESSIONS, json={name: "x" * (longest + 1)})).status_code == 400


async def test_methods(start: Starter, tmp_path: Path) -> None:
    """Each described method is served, and none that is not described."""
    client = (await start(state_dir=tmp_path)).client
    paths = {path: item for path, item in document()["paths"].items() if path.startswith(SESSIONS)}
    assert len(paths) == 6
    for path, item in paths.items():
        for method in ("get", "post", "patch", "delete", "put"):
            response = await client.request(method, re.sub(r"{\w+}", "x", path), json={})
            assert (response.status_code != 405) is (method in item), (method, path)
