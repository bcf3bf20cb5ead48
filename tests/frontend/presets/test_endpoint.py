"""Presets over HTTP, before a scripted text service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.chassis.settings import SettingsError
from tests.fakes.scripted_text_service import ScriptedTextService
from tests.frontend.conftest import Frontend, Starter, running_frontend
from tests.frontend.presets.preset_texts import POEM
from tests.frontend.requests import CHAT, COMPLETIONS, chat, completion, error_of


async def test_list(frontend: Frontend) -> None:
    """All presets are listed with what a caller needs to fill them in."""
    listed = (await frontend.client.get("/v1/presets")).json()
    assert listed["object"] == "list"
    shown = {preset["name"]: preset for preset in listed["data"]}
    assert list(shown) == ["chat", "continue", "translate", "summarize", "rewrite", "code"]
    for preset in shown.values():
        assert preset["object"] == "preset" and preset["title"] and preset["description"]
        assert isinstance(preset["parameters"]["temperature"], float)
    (language,) = shown["translate"]["variables"]
    assert set(language) == {"name", "description"} and language["name"] == "target_language"
    (length,) = shown["summarize"]["variables"]
    assert length["default"] in length["choices"]
    for name, preset in shown.items():
        assert (await frontend.client.get(f"/v1/presets/{name}")).json() == preset


async def test_unknown(frontend: Frontend) -> None:
    """A preset that does not exist is a 404 that is not taken for a missing model."""
    response = await frontend.client.get("/v1/presets/nil")
    assert response.status_code == 404
    assert error_of(response)["code"] == "preset_not_found"


async def test_chat_with_a_preset(start: Starter, service: ScriptedTextService, tmp_path: Path) -> None:
    """The text service gets the conversation and the parameters that the preset makes, and knows no preset."""
    (tmp_path / "poem.toml").write_text(POEM)
    frontend = await start(presets_dir=tmp_path)
    asked = chat("the sea", preset="poem", preset_variables={"form": "haiku"}, temperature=0)
    assert (await frontend.client.post(CHAT, json=asked)).status_code == 200
    (request,) = service.requests
    assert [(one.role, one.text) for one in request.chat.messages] == [
        ("system", "You are a poet who charges $5 a haiku."),
        ("user", "A haiku about this, gay:\nthe sea"),
    ]
    assert (request.sampling_params.temperature, request.sampling_params.max_tokens) == (0, 12)


async def test_continue(frontend: Frontend, service: ScriptedTextService) -> None:
    """With `continue` the user's text is the opening of the answer, which the model goes on with."""
    asked = chat("Once upon a time", preset="continue")
    assert (await frontend.client.post(CHAT, json=asked)).status_code == 200
    (request,) = service.requests
    last = request.chat.messages[-1]
    assert request.chat.continue_final_message and (last.role, last.text) == ("assistant", "Once upon a time")


async def test_refusals(frontend: Frontend, service: ScriptedTextService) -> None:
    """An unknown preset and a missing variable are 400 by name; completions, which have no messages, refuse presets."""
    for body, param in (
        (chat(preset="nil"), "preset"),
        (chat(preset="translate"), "preset_variables.target_language"),
    ):
        response = await frontend.client.post(CHAT, json=body)
        assert (response.status_code, error_of(response)["param"]) == (400, param)
    wrong: list[dict[str, Any]] = [{"preset": "chat"}, {"preset_variables": {}}]
    for fields in wrong:
        response = await frontend.client.post(COMPLETIONS, json=completion(**fields))
        assert response.status_code == 400
        assert "is for /v1/chat/completions only" in error_of(response)["message"]
    assert service.requests == []


async def test_a_broken_file_ends_the_start(tmp_path: Path) -> None:
    """The service does not start with a broken preset."""
    (tmp_path / "poem.toml").write_text("title = 1")
    with pytest.raises(SettingsError, match=r"poem\.toml is wrong: title must be a string"):
        async with running_frontend(1, presets_dir=tmp_path):
            pass
