"""Strict JSON: sound documents are read as by the standard library, doubtful ones are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest, TooLarge
from services.frontend import strict_json
from services.frontend.strict_json import MAX_CONTAINERS, MAX_DEPTH, MAX_VALUES, parse_object

TEXT = st.text(st.characters(codec="utf-8")) | st.text('\\":{}[],u', max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e15, 1e15) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=6)


@given(OBJECTS, st.booleans())
def test_sound_objects_are_read(value: dict[str, Any], ascii_only: bool) -> None:
    """Whatever the standard library writes is read back the same, escaped or not."""
    assert parse_object(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(OBJECTS, TEXT, VALUES, VALUES, st.booleans())
def test_a_name_given_twice_is_refused(
    value: dict[str, Any], name: str, first: Any, second: Any, ascii_only: bool
) -> None:
    """A duplicate name is found wherever it is and however it is written."""
    pair = f"{json.dumps(name)}: {json.dumps(first)}, {json.dumps(name, ensure_ascii=ascii_only)}: {json.dumps(second)}"
    rest = json.dumps(value, ensure_ascii=ascii_only)
    with pytest.raises(InvalidRequest, match="one name twice"):
        parse_object(f'{{"outer": [{rest}, {{{pair}}}]}}'.encode())


@pytest.mark.parametrize("offset", range(-3, 4))
@pytest.mark.parametrize("text", ['a"b', "a\\b", '\\"', '"\\', "\\\\", ":{,"])
def test_pieces_are_cut_anywhere(text: str, offset: int) -> None:
    """Where a piece of the text ends, within an escape too, changes nothing."""
    padding = "x" * (strict_json._PIECE_BYTES - len('{"a": "') + offset)
    value = {"a": padding + text, "b": [{"c": text}]}
    assert parse_object(json.dumps(value).encode()) == value


def test_depth_is_bounded() -> None:
    """An object nested as deep as allowed is read; one level more is refused."""

    def nested(depth: int) -> bytes:
        return b'{"x":' * depth + b"1" + b"}" * depth

    assert parse_object(nested(MAX_DEPTH))
    with pytest.raises(InvalidRequest, match=f"more than {MAX_DEPTH} deep"):
        parse_object(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("number", ["18446744073709551615", "-9223372036854775808", "1.5e18", "0.1"])
def test_numbers_of_64_bits_are_read(number: str) -> None:
    """Integers of 64 bits keep their value."""
    assert parse_object(f'{{"x": {number}}}'.encode()) == {"x": json.loads(number)}


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" * 300, "1e30"])
def test_numbers_beyond_64_bits_are_refused(number: str) -> None:
    """An integer that would lose digits is refused, within lists too."""
    with pytest.raises(InvalidRequest, match="beyond 64 bits"):
        parse_object(f'{{"x": [0, {number}]}}'.encode())


@pytest.mark.parametrize(
    "body", [b"[" + b"1," * (MAX_VALUES + 1), b"[" * (MAX_CONTAINERS + 1), b"{" * (MAX_CONTAINERS + 1)]
)
def test_number_of_values_is_bounded(body: bytes) -> None:
    """Too many values are refused before they take memory, sound or not."""
    with pytest.raises(TooLarge, match="at most"):
        parse_object(body)


def test_commas_within_text_are_not_counted() -> None:
    """Text may have any characters, as many as fit."""
    value = {"x": ",[{" * MAX_VALUES}
    assert parse_object(json.dumps(value).encode()) == value
