from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pydantic import Field, ValidationError
from pydantic_settings import SettingsConfigDict

from services.chassis.settings import ServiceSettings, SettingsError


class CarSettings(ServiceSettings):
    model_config = SettingsConfigDict(env_prefix="TEST_CAR_")

    colour: str
    doors: int = Field(default=4, ge=1, le=5)
    extras: dict[str, int] = Field(default_factory=dict)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """The environment as it was before, after each test."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def test_values_are_read_and_typed() -> None:
    """Variables with the prefix become typed values, what is not given its default."""
    os.environ.update(TEST_CAR_COLOUR="red", TEST_CAR_EXTRAS='{"radio": 1}')
    settings = CarSettings.load()
    assert (settings.colour, settings.doors, settings.extras) == ("red", 4, {"radio": 1})


def test_settings_are_frozen() -> None:
    """Nobody changes them afterwards."""
    os.environ["TEST_CAR_COLOUR"] = "red"
    settings = CarSettings.load()
    with pytest.raises(ValidationError):
        settings.colour = "blue"


@pytest.mark.parametrize(
    ("variables", "parts"),
    [
        ({"TEST_CAR_COLOR": "red", "TEST_CAR_COLOUR": "red"}, ("TEST_CAR_COLOR", "known are", "TEST_CAR_DOORS")),
        ({}, ("TEST_CAR_COLOUR", "required")),
        ({"TEST_CAR_COLOUR": "red", "TEST_CAR_DOORS": "nine"}, ("TEST_CAR_DOORS", "integer")),
        ({"TEST_CAR_COLOUR": "red", "TEST_CAR_DOORS": "6"}, ("TEST_CAR_DOORS", "5")),
        ({"TEST_CAR_COLOUR": "red", "TEST_CAR_EXTRAS": "{"}, ("TEST_CAR_EXTRAS", "JSON")),
        ({"TEST_CAR_COLOUR": "red", "TEST_CAR_EXTRAS": '{"radio": "x"}'}, ("TEST_CAR_EXTRAS", "integer")),
    ],
)
def test_wrong_settings_are_told_in_one_line(variables: dict[str, str], parts: tuple[str, ...]) -> None:
    """Unknown, missing, mistyped, out-of-range and malformed variables are each named in one line."""
    os.environ.update(variables)
    with pytest.raises(SettingsError) as refusal:
        CarSettings.load()
    text = str(refusal.value)
    assert all(part in text for part in parts), text
    assert "\n" not in text


def test_others_variables_are_none_of_ours() -> None:
    """Variables with another prefix are left alone."""
    os.environ.update(TEST_CAR_COLOUR="red", TEST_CARAVAN="x", TEST_OTHER="y")
    assert CarSettings.load().colour == "red"
