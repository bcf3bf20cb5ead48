"""What a preset makes of a request's body."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.chassis.errors import InvalidRequest, Unsupported
from services.frontend.chat_request import parse_chat_request
from services.frontend.presets.application import with_preset
from services.frontend.presets.library import Presets
from tests.frontend.presets.preset_texts import LETTER, POEM

HAIKU = {"form": "haiku"}


@pytest.fixture
def presets(tmp_path: Path) -> Presets:
    """Those that come along, `poem` and `letter`."""
    (tmp_path / "poem.toml").write_text(POEM)
    (tmp_path / "letter.toml").write_text(LETTER)
    return Presets(tmp_path)


def message(content: Any, role: str = "user") -> dict[str, Any]:
    """One message."""
    return {"role": role, "content": content}


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A request's body; without messages it has one of the user."""
    return {"model": "m", "messages": list(messages) or [message("the sea")], **fields}


def test_no_preset(presets: Presets) -> None:
    """A body that names no preset is passed on as it is."""
    plain = body(preset=None)
    assert with_preset(plain, presets) is plain


def test_poem(presets: Presets) -> None:
    """The system message is put first, the user's becomes the template's, parameters are set, and the caller's body
    stays as it was."""
    given = body(preset="poem", preset_variables=HAIKU)
    changed = with_preset(given, presets)
    assert changed == {
        "model": "m",
        "messages": [
            message("You are a poet who charges $5 a haiku.", "system"),
            message("A haiku about this, gay:\nthe sea"),
        ],
        "temperature": 0.9,
        "max_tokens": 12,
    }
    assert given == body(preset="poem", preset_variables=HAIKU)
    parse_chat_request(changed)


def test_own_fields_go_before(presets: Presets) -> None:
    """A parameter of the request goes before the preset's, under either of its names; null counts as left out."""
    own = {"temperature": 0, "max_tokens": None, "max_completion_tokens": 3}
    changed = with_preset(body(preset="poem", preset_variables=HAIKU, **own), presets)
    assert {key: changed[key] for key in own} == own
    assert with_preset(body(preset="poem", preset_variables=HAIKU, temperature=None), presets)["temperature"] == 0.9


@pytest.mark.parametrize("role", ["system", "developer"])
def test_own_system_message_goes_before(presets: Presets, role: str) -> None:
    """A conversation with instructions of its own gets no others."""
    changed = with_preset(
        body(message("Be brief.", role), message("the sea"), preset="poem", preset_variables=HAIKU), presets
    )
    assert [one["content"] for one in changed["messages"]] == ["Be brief.", "A haiku about this, gay:\nthe sea"]


def test_the_last_user_message_alone(presets: Presets) -> None:
    """Earlier turns, and what follows the last user message, stay as they are; so do its other members."""
    turns = [
        message("old"),
        message("answer", "assistant"),
        {**message("new"), "name": "ann"},
        message("so", "assistant"),
    ]
    changed = with_preset(body(*turns, preset="poem", preset_variables=HAIKU), presets)["messages"]
    assert changed[1:3] == turns[:2] and changed[4] == turns[3]
    assert changed[3] == {"role": "user", "content": "A haiku about this, gay:\nnew", "name": "ann"}


def test_parts_are_joined(presets: Presets) -> None:
    """A message in text parts counts with a newline between them."""
    parts = [{"type": "text", "text": "the"}, {"type": "text", "text": "sea"}]
    changed = with_preset(body(message(parts), preset="poem", preset_variables=HAIKU), presets)
    assert changed["messages"][-1]["content"] == "A haiku about this, gay:\nthe\nsea"


@pytest.mark.parametrize("text", ["$5", "$mood", "${form}", "$$", "$input", "a $", "%s {0} {form}"])
def test_nothing_in_values_is_expanded(presets: Presets, text: str) -> None:
    """What looks like a template in the user's text or in a variable's value stays as it was written."""
    changed = with_preset(body(message(text), preset="poem", preset_variables={**HAIKU, "mood": text}), presets)
    assert changed["messages"][-1]["content"] == f"A haiku about this, {text}:\n{text}"


def test_opening(presets: Presets) -> None:
    """A preset with an opening begins the answer, which the model goes on with."""
    changed = with_preset(body(message("Ann"), preset="letter"), presets)
    assert changed["messages"] == [message("Write a letter."), message("Dear Ann", "assistant")]
    assert changed["continue_final_message"] is True
    parse_chat_request(changed)


def test_an_opened_answer_goes_on(presets: Presets) -> None:
    """When an answer to a preset with an opening goes on, the opening stands before what it has so far."""
    turns = [message("Ann"), message(", how are", "assistant")]
    changed = with_preset(body(*turns, preset="letter", continue_final_message=True), presets)
    assert changed["messages"] == [message("Write a letter."), message("Dear Ann, how are", "assistant")]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"continue_final_message": False}, "continue_final_message"),
        ({"messages": [message("Ann"), message("so", "assistant")]}, "messages"),
        ({"messages": [message("Ann"), message("so", "system")], "continue_final_message": True}, "messages"),
    ],
)
def test_no_place_for_an_opening(presets: Presets, fields: dict[str, Any], param: str) -> None:
    """An opening is refused where the answer does not begin or go on."""
    with pytest.raises(InvalidRequest, match="preset letter begins the answer itself") as refusal:
        with_preset(body(preset="letter") | fields, presets)
    assert refusal.value.param == param


@pytest.mark.parametrize(
    ("fields", "param", "told"),
    [
        ({"preset": "nil"}, "preset", "allowed are chat, continue, translate, summarize, rewrite, code, letter, poem"),
        ({"preset": 5}, "preset", "must be a string"),
        ({"preset": None}, "preset_variables", "needs preset"),
        ({"preset_variables": "x"}, "preset_variables", "must be an object"),
        (
            {"preset_variables": None},
            "preset_variables.form",
            "preset poem needs preset_variables.form: Form of the poem",
        ),
        ({"preset_variables": {"form": None}}, "preset_variables.form", "needs"),
        ({"preset_variables": {"form": "ode"}}, "preset_variables.form", "must be one of sonnet, haiku"),
        ({"preset_variables": {"form": 5}}, "preset_variables.form", "must be a string"),
        ({"preset_variables": {"mood": "x" * 4097, "form": "haiku"}}, "preset_variables.mood", "at most 4096"),
        ({"preset_variables": {"from": "x"}}, "preset_variables.from", "is unknown; preset poem has form, mood"),
        ({"preset_variables": {"input": "x"}}, "preset_variables.input", "is unknown; preset poem has form, mood"),
        ({"preset_variables": {"a\nb": "x"}}, "preset_variables", "unknown name; preset poem has form, mood"),
        ({"preset": "letter"}, "preset_variables.form", "preset letter has no variables"),
        ({"messages": [message("x", "system")]}, "messages", "there is none"),
    ],
)
def test_wrong_requests(presets: Presets, fields: dict[str, Any], param: str, told: str) -> None:
    """What is wrong is told in one line that names the field and what is allowed."""
    with pytest.raises(InvalidRequest, match=told) as refusal:
        with_preset(body(preset="poem", preset_variables=HAIKU) | fields, presets)
    assert refusal.value.param == param
    assert "\n" not in refusal.value.message


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ("x", "messages"),
        ([message(None)], "messages[0].content"),
        ([5, message("x")], "messages[0]"),
        ([message([{"type": "image_url"}]), message("x")], "messages[0].content[0]"),
    ],
)
def test_wrong_messages(presets: Presets, messages: Any, param: str) -> None:
    """A wrong message is named by the place at which the caller sent it."""
    with pytest.raises((InvalidRequest, Unsupported)) as refusal:
        with_preset({**body(preset="chat"), "messages": messages}, presets)
    assert refusal.value.param == param
