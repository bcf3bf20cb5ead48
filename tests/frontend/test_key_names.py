"""Names of API keys: what the text service hears of who asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.chassis.settings import SettingsError
from services.frontend.api_keys import ApiKeys
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Starter
from tests.frontend.requests import CHAT, chat


async def test_names_of_keys(start: Starter, service: ScriptedTextService, tmp_path: Path) -> None:
    """A line may give its key a name, several keys the same; the text service hears the name of the caller's key, and
    nothing where that has none. A key may hold colons of its own."""
    path = tmp_path / "keys"
    path.write_text("ann: so-1\nann:   so-2\n bob.x-y_z: so:3 \nso-4\nso-5:so\n")
    frontend = await start(api_keys_file=path)
    for key in ("so-1", "so-2", "so:3", "so-4", "so-5:so"):
        response = await frontend.client.post(CHAT, json=chat(), headers={"authorization": f"Bearer {key}"})
        assert response.status_code == 200
    assert [request.caller for request in service.requests] == ["ann", "ann", "bob.x-y_z", "", ""]
    for wrong in ("ann: so-1", "ann", "so-5"):
        assert (
            await frontend.client.post(CHAT, json=chat(), headers={"authorization": f"Bearer {wrong}"})
        ).status_code == 401


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("people: so-a b\n", "line 1 of"),
        ("people:\n: so-a\n", "line 2 of"),
        ("peo ple: so-a\n", "line 1 of"),
        ("one: so-a\ntwo: so-a\n", "line 2 of .* repeats a key under another name"),
    ],
)
def test_wrong_names(tmp_path: Path, content: str, message: str) -> None:
    """A name with a space, none before a colon, a key with a space, and one key with two names are refused by their
    line, whose key is not told."""
    path = tmp_path / "keys"
    path.write_text(content)
    with pytest.raises(SettingsError, match=message) as refusal:
        ApiKeys(path)
    assert "so-" not in str(refusal.value)
