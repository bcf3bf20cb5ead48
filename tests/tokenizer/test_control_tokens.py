from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.chassis.errors import InvalidRequest
from services.tokenizer.control_tokens import ControlTokens, Scope
from services.tokenizer.segment import Segment
from services.tokenizer.token_table import AddedToken

_CONTENTS = ["<|end|>", "<|end_of_text|>", "[X]", "word", "<think>", "<unprinted>", "\n\n", "user"]
_SPECIAL = ("<|end|>", "<|end_of_text|>", "[X]", "word")
TOKENS = [
    AddedToken(position, content, content in _SPECIAL, False, False) for position, content in enumerate(_CONTENTS)
]
CONTROL = ControlTokens(TOKENS, ["<think>\n\nuser"])
_TEXT = st.lists(
    st.one_of(st.sampled_from([*_CONTENTS, "<", "<|end|", "|end|>", "wo", "rd", " "]), st.text(max_size=3))
).map("".join)


@pytest.mark.parametrize("scope", list(Scope))
@given(text=_TEXT)
def test_a_disguise_can_be_removed(scope: Scope, text: str) -> None:
    """The disguised text is as long as the plain one, and becomes it again."""
    disguise = CONTROL.disguise_for(text)
    disguised = CONTROL.disguised(text, disguise, scope)
    assert isinstance(disguised, str)
    assert len(disguised) == len(text)
    assert disguise.removed(disguised) == text


@given(_TEXT)
def test_disguised_text_has_no_control_token(text: str) -> None:
    """Whatever is in a caller's text, all its control tokens are disguised."""
    disguised = CONTROL.disguised(text, CONTROL.disguise_for(text), Scope.EVERYTHING)
    assert isinstance(disguised, str)
    assert not any(content in disguised for content in (*_SPECIAL, "<think>"))


@given(st.lists(st.tuples(_TEXT, st.booleans()), max_size=6))
def test_segments_join_to_the_text_and_keep_the_templates_tokens(pieces: list[tuple[str, bool]]) -> None:
    """Nothing is lost; a token with an edge of a caller is in user text, and every other is not."""
    plain = "".join(text for text, _ in pieces)
    disguise = CONTROL.disguise_for(plain)
    disguised = "".join(
        str(CONTROL.disguised(text, disguise, Scope.EVERYTHING)) if is_callers else text for text, is_callers in pieces
    )
    segments = CONTROL.segments(plain, disguised)
    assert "".join(segment.text for segment in segments) == plain
    start = 0
    for text, is_user_text in segments:
        shown = disguised[start : start + len(text)]
        for found in CONTROL.spelled_in(text):
            intact = shown[found.start()] == text[found.start()] and shown[found.end() - 1] == text[found.end() - 1]
            assert intact is not is_user_text
        start += len(text)


@pytest.mark.parametrize(
    ("text", "may"),
    [("plain user text\n\n", False), ("a < b", True), ("key]", True), ("a word", True), ("w o r d", False)],
)
def test_texts_without_an_edge_need_no_second_look(text: str, may: bool) -> None:
    """Only text with a character at which a control token begins or ends, or with a whole word token, may forge one."""
    assert CONTROL.may_be_forged_by({"messages": [{"content": text}]}) is may
    assert CONTROL.may_be_forged_by([{text: 1}]) is may


def test_marks_are_kept_where_the_scope_says() -> None:
    """`<think>` stays whole for templates that search for it, and the special token beside it does not."""
    disguise = CONTROL.disguise_for("")
    text = CONTROL.disguised({"a": ["<think><|end|>", 1]}, disguise, Scope.ALL_BUT_MARKS)
    end = "".join(disguise.private.get(character, character) for character in "<|end|>")
    assert text == {"a": ["<think>" + end, 1]}


def test_the_longest_token_counts() -> None:
    """Of tokens that begin alike the longest is found, as the tokenizer does."""
    assert [match[0] for match in CONTROL.spelled_in("<|end_of_text|><|end|>")] == ["<|end_of_text|>", "<|end|>"]


def test_private_characters_in_the_text_are_passed_over() -> None:
    """A text that brings private characters of its own gets others."""
    taken = "".join(map(chr, range(0x100000, 0x100100)))
    assert not set(CONTROL.disguise_for(taken).private.values()) & set(taken)


def test_a_text_of_all_private_characters_is_refused() -> None:
    """There is nothing left to tell texts apart with."""
    with pytest.raises(InvalidRequest, match="private characters"):
        CONTROL.disguise_for("".join(map(chr, range(0x100000, 0x10FFFE))))


def test_many_forged_tokens_take_linear_time() -> None:
    """Four times as many forged tokens take about four times as long."""

    def seconds(count: int) -> float:
        plain = "<|end|>" + "<|end|> <" * count
        start = time.process_time()
        disguise = CONTROL.disguise_for(plain)
        disguised = "<|end|>" + str(CONTROL.disguised(plain[7:], disguise, Scope.EVERYTHING))
        assert CONTROL.segments(plain, disguised) == [Segment("<|end|>", False), Segment(plain[7:], True)]
        return time.process_time() - start

    # Quadratic work would take sixteen times as long; a run of a few milliseconds is noisy.
    assert seconds(80_000) < 10 * seconds(20_000) + 0.05
