"""JSON is recognized, and its first fault found, however the text is split."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.tokenizer.format_checks.json_text import JsonText
from tests.tokenizer.format_checks.checking import CUTS, faults_of, pieces_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.builds(
    lambda value, indent, ascii_only, before: before + json.dumps(value, indent=indent, ensure_ascii=ascii_only),
    VALUES,
    st.sampled_from([None, 0, 1, "\t"]),
    st.booleans(),
    st.sampled_from(["", " ", "\r\n\t"]),
)
# What mutations put in: what JSON is made of, and what is near to it.
ODD = st.sampled_from(
    [*'{}[]:,"\\/ \n\t\r\x00\x1f-+.eE0123456789abtrufnls', "\ud800", "\ufeff", "\xa0", "é", "'", "//"]
)
SOUP = st.lists(ODD, max_size=12).map("".join)


def refuse(constant: str) -> None:
    """NaN and Infinity are none of JSON's values."""
    raise ValueError(constant)


def is_json(text: str) -> bool:
    """What Python's own parser says."""
    try:
        json.loads(text, parse_constant=refuse, parse_int=str)
    except ValueError:
        return False
    return True


@given(DOCUMENTS, CUTS)
def test_documents_have_no_fault(document: str, cuts: list[int]) -> None:
    """A valid document, in any pieces, has no fault."""
    assert faults_of(JsonText, pieces_of(document, cuts)) == []


@given(DOCUMENTS, st.lists(st.tuples(st.integers(0, 1 << 30), st.integers(0, 3), SOUP), max_size=3), CUTS)
def test_mutated_documents(document: str, changes: list[tuple[int, int, str]], cuts: list[int]) -> None:
    """A document with characters put in, left out or replaced has a fault exactly where Python's parser refuses it,
    and the same one in any pieces."""
    for place, left_out, put_in in changes:
        at = place % (len(document) + 1)
        document = document[:at] + put_in + document[at + left_out :]
    whole = faults_of(JsonText, [document])
    assert bool(whole) == (not is_json(document))
    assert len(whole) <= 1
    assert faults_of(JsonText, pieces_of(document, cuts)) == whole


@given(SOUP, CUTS)
@example("01", [1])
@example("-", [])
@example("[1.]", [])
@example('"\\u12"', [])
def test_soup(text: str, cuts: list[int]) -> None:
    """So has a text of JSON's own pieces in any order."""
    whole = faults_of(JsonText, [text])
    assert bool(whole) == (not is_json(text))
    assert faults_of(JsonText, pieces_of(text, cuts)) == whole


@given(DOCUMENTS, st.integers(0, 1 << 30))
def test_a_document_that_breaks_off(document: str, place: int) -> None:
    """The begin of a document has no fault but the one at its end, if it is not complete there."""
    begin = document[: place % (len(document) + 1)]
    faults = faults_of(JsonText, [begin])
    assert [fault.position for fault in faults] == ([] if is_json(begin) else [len(begin)])


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "the text ends where a value must follow"),
        (" \n", 2, "the text ends where a value must follow"),
        ("{", 1, "the text ends where a name in quotes or '}' must follow"),
        ('{"a', 3, "the text ends where the end of a string must follow"),
        ('{"a"', 4, "the text ends where ':' must follow"),
        ('{"a": 1', 7, "the text ends where a digit or ',' or '}' must follow"),
        ('{"a": []', 8, "the text ends where ',' or '}' must follow"),
        ("[1, ", 4, "the text ends where a value must follow"),
        ("tru", 3, "the text ends where 'true' must follow"),
        ("1.", 2, "the text ends where a digit must follow"),
        ('"\\u00', 5, "the text ends where a hexadecimal digit must follow"),
        ("Sure! {}", 0, "'S' stands where a value must follow"),
        ("```json\n{}", 0, "'`' stands where a value must follow"),
        ("{} I hope", 3, "'I' stands after the value, where the text must end"),
        ("{'a': 1}", 1, "\"'\" stands where a name in quotes or '}' must follow"),
        ('{"a": 1,}', 8, "'}' stands where a name in quotes must follow"),
        ('{"a" 1}', 5, "'1' stands where ':' must follow"),
        ("[1,]", 3, "']' stands where a value must follow"),
        ("[1}", 2, "'}' stands where ',' or ']' must follow"),
        ('{"a": 1]', 7, "']' stands where ',' or '}' must follow"),
        ("[1 2]", 3, "'2' stands where ',' or ']' must follow"),
        ("[012]", 2, "'1' stands after a number's leading zero"),
        ("[-x]", 2, "'x' stands where a digit must follow"),
        ("[1e+]", 4, "']' stands where a digit must follow"),
        ("nulL", 3, "'L' stands where 'null' must follow"),
        ("NaN", 0, "'N' stands where a value must follow"),
        ('["a\nb"]', 3, "'\\n' stands in a string, where it must be escaped"),
        ('"\\x41"', 2, "'x' stands after a backslash, where JSON has none of \"\\/bfnrtu"),
        ('"\\u00g0"', 5, "'g' stands where a hexadecimal digit must follow"),
        ("[1] // end", 4, "'/' stands after the value, where the text must end"),
    ],
)
def test_faults(text: str, position: int, message: str) -> None:
    """The first fault is named with its place and what must stand there."""
    for pieces in ([text], list(text)):
        (fault,) = faults_of(JsonText, pieces)
        assert (fault.position, fault.message, fault.shown_at) == (position, message, position)


def test_deep_nesting() -> None:
    """A text of very many brackets is checked like any other: nothing recurses."""
    deep = "[" * 200_000
    assert faults_of(JsonText, [deep, "]" * 200_000]) == []
    assert faults_of(JsonText, [deep])[0].position == 200_000


def test_after_the_first_fault() -> None:
    """After the first fault nothing is found any more."""
    checker = JsonText()
    found: list[Any] = [*checker.feed("]"), *checker.feed("]"), *checker.finish()]
    assert len(found) == 1
