"""Presets from files: what they hold, and what is refused."""

from __future__ import annotations

import pytest

from services.frontend.presets.preset import Preset, Variable
from services.frontend.presets.preset_file import PresetError, parse_preset
from tests.frontend.presets.preset_texts import POEM, named


def test_everything() -> None:
    """A file gives the preset its texts, its parameters, and its variables in the file's order."""
    assert parse_preset("poem", POEM.encode()) == Preset(
        name="poem",
        title="Poem",
        description="Write a poem.",
        system="You are a poet who charges $$5 a $form.",
        user="A $form about this, $mood:\n$input",
        opening=None,
        variables=(
            Variable("form", "Form of the poem", choices=("sonnet", "haiku")),
            Variable("mood", "Mood of the poem", default="gay"),
        ),
        parameters={"temperature": 0.9, "max_tokens": 12},
    )


def test_the_least() -> None:
    """A title and a description are enough: the user's message then stays as it is."""
    preset = parse_preset("least", named("Least").encode())
    assert (preset.system, preset.user, preset.opening, preset.variables) == (None, "$input", None, ())


@pytest.mark.parametrize("name", ["", "Poem", "a b", "a.b", "_a", "../a", "é", "a" * 65])
def test_names(name: str) -> None:
    """A file whose name cannot be a preset's is refused."""
    with pytest.raises(PresetError, match="its name must be"):
        parse_preset(name, named("A").encode())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("title =", "it is not TOML"),
        ('title = "a"\n', "description is missing or empty"),
        ('title = "  "\ndescription = "b"', "title is missing or empty"),
        ('title = 5\ndescription = "b"', "title must be a string"),
        (named("A") + "users = 'x'", "users is unknown; known are title, description, system"),
        (named("A") + "user = 'x'", r"what the user wrote is lost; use \$input"),
        (named("A") + "user = '$5 $input'", r"user has a \$ that names no variable; write \$\$"),
        (named("A") + "user = '$input $other'", r"user uses \$other, but it may use input"),
        (named("A") + "system = '$input'", r"system uses \$input, but it may use no variable"),
        (named("A") + "parameters = 1", "parameters must be a table"),
        (named("A") + "parameters.temperature = 3", "parameters.temperature must be a number from 0 to 2"),
        (named("A") + "parameters.max_tokens = 0", "parameters.max_tokens must be an integer from 1"),
        (named("A") + "parameters.n = 2", "parameters.n is unknown"),
        (named("A") + "parameters.temperature = nan", "parameters.temperature must be a number"),
        (named("A") + "variables = []", "variables must be a table"),
        (named("A") + "variables.a = 'x'", "variables.a must be a table"),
        (named("A") + "variables.input.description = 'x'", "variables.input: a name is"),
        (named("A") + "variables.A.description = 'x'", "variables.A: a name is"),
        (named("A") + "variables.a.description = 'x'", "variable a is in none of its texts"),
        (named("A") + "system = '$a'\nvariables.a.default = 'x'", "variables.a.description is missing"),
        (named("A") + "system = '$a'\nvariables.a = {description = 'x', kind = 'y'}", "variables.a.kind is unknown"),
        (named("A") + "system = '$a'\nvariables.a = {description = 'x', choices = [1]}", "a list of strings"),
        (
            named("A") + "system = '$a'\nvariables.a = {description = 'x', choices = ['b'], default = 'c'}",
            "none of its",
        ),
        (named("A") + "x = " + "[" * 5000, "it is n"),
    ],
)
def test_wrong_files(text: str, told: str) -> None:
    """What is wrong in a file is told in one line that names it."""
    with pytest.raises(PresetError, match=told) as refusal:
        parse_preset("a", text.encode())
    assert "\n" not in str(refusal.value)


def test_not_utf8() -> None:
    """A file in another encoding is refused."""
    with pytest.raises(PresetError, match="it is not UTF-8"):
        parse_preset("a", b"title = '\xe9'")
